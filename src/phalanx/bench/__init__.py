"""What we claim about speed, as programs: the rows of `phalanx bench core`.

`scenarios.py` names the rows, `clusters.py` builds the cluster of one, `measure.py` measures it in a process of its own,
`suite.py` runs many, `report.py` shows them. Nothing here is used by the scheduler.
"""
