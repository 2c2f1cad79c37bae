"""``python -m gingham`` is the command line."""

from gingham.cli import main

if __name__ == "__main__":
    main()
