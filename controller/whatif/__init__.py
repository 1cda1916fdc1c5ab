"""What would happen: a cluster on file, changes to it, and the controller's own decisions about the result.

Called by `charpente snapshot`, `simulate` and `explain`. Nothing is decided here: plans come from the
engine and from disruption, exactly as the controller asks for them. Never writes to a cluster or a cloud.
"""

from controller.whatif.changes import Apply, Change, Drain, Impossible, Scale, changed
from controller.whatif.clusterfile import ClusterFile, UnusableFile, dumped, loaded
from controller.whatif.forecast import Fleet, Forecast, forecast
from controller.whatif.taking import mirror_of, take

__all__ = [
    "Apply",
    "Change",
    "ClusterFile",
    "Drain",
    "Fleet",
    "Forecast",
    "Impossible",
    "Scale",
    "UnusableFile",
    "changed",
    "dumped",
    "forecast",
    "loaded",
    "mirror_of",
    "take",
]
