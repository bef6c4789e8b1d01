"""`python -m concur`: the command line. Guarded, since worker processes import it again."""

from concur.cli import main

if __name__ == "__main__":
    main()
