"""What the page shows, as plain data: functions of a cluster that was seen and of what its reader may see."""

from typing import Any

Json = dict[str, Any]  # Any: as JSON has it
