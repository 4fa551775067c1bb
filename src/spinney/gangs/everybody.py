"""The gangs of a cluster and their pods, whoever schedules them."""

from spinney.gangs.book import GangBook
from spinney.gangs.intake import ClusterIntake
from spinney.gangs.membership import membership
from spinney.gangs.tree import Gang, GangKey
from spinney.kube.keys import Key


class EverybodysGangs:
    """A book of all gangs that follows what an intake is told. Mutable through the intake."""

    def __init__(self, intake: ClusterIntake) -> None:
        self.book = GangBook(membership, intake.gangs)
        intake.gangs.subscribe(self)
        intake.cluster.subscribe(self.book.pod_changed)

    def put_gang(self, gang: Gang) -> None:
        """Take in a gang that appeared or changed."""
        self.book.put(gang)

    def remove_gang(self, key: GangKey) -> None:
        """Take out a gang that is gone."""
        self.book.remove(key)

    def attach(self, part: GangKey, home: GangKey) -> None:
        """Have pods that name ``part`` belong to the gang ``home``, which may be itself."""
        self.book.attach(part, home)

    def derive_again(self, workload: Key | None) -> None:
        """Look again at the gangs of a Workload, or of all."""
        self.book.derive_again(workload)
