"""`python -m sbnn` is `sbnn`."""

from sbnn.cli import main

if __name__ == "__main__":
    main()
