"""python -m ftbuf"""

import sys

from .cli.main import main

sys.exit(main())
