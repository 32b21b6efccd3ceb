"""`python -m tangere`: the command line where the installed script is not on the path."""

from tangere.cli.main import main

raise SystemExit(main())
