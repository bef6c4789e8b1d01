"""The programs that run inside a child: isolated first, then the host of code nobody trusts.

Their texts are held in the judge's memory and handed to a fresh interpreter (`boot`), so that
nothing on the disk is trusted. They import the standard library, each other, and PyTorch where the
child is of that kind; nothing else of this project.
"""
