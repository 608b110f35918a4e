"""`python -m sbnn` is `sbnn`."""

from sbnn.cli.main import main

if __name__ == "__main__":
    main()
