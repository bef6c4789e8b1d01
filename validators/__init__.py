"""The judge: whether a solution compiles, is right and how fast; whether a task is fit."""
