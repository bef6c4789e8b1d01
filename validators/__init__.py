"""The judge: does a solution compile, is it right, how fast is it; and is a task fit to judge on."""
