"""The thesis' tables of State Maintenance Components, as they are printed."""

TABLE_5_4 = """
N   "TrafficCongestion"
Q   A := ((closest, InductiveLoop, null, null),
          (aggregate, null, avg, (-30^r, 0^r)),
          (multiple: separate, null, null, D_L),
          (closest, atomic, null, null));
    B := ((closest, CarSpeed, null, null),
          (aggregate, null, avg, (-60^r, 0^r)),
          (multiple: separate, null, null, D_L),
          (closest, atomic, null, null))
P^n (A.value > 2.5) && (B.value < 7) && (A.location == B.location)
A^n location := A.location; level := B.value;
P^x (B.value > 15) && (B.location == last.location)
A^x location := last.location; level := B.value;
"""

TABLE_5_10_A = """
N "TrafficCongestion"
Q A := ((closest, IL_High, null, null), (closest, 0^r, null, null),
        (multiple: separate, null, null, D_L), (closest, ingress, null, null));
  B := ((closest, CarSpeed_Slow, null, null), (closest, 0^r, null, null),
        (multiple: separate, null, null, D_L), (multiple: any, null, null, D_S))
P^n A.valid && B.valid && (A.location == B.location)
A^n location := A.location; level := B.value;
P^x !B.valid && (B.location == last.location)
A^x location := last.location; level := B.value;
"""

TABLE_5_10_B_C = """
N "IL_High"
Q A := ((closest, InductiveLoop, null, null), (aggregate, null, avg, (-30^r, 0^r)),
        (multiple: separate, null, null, D_L), (closest, atomic, null, null))
P^n A.value > 2.5      A^n location := A.location;
P^x (A.value < 2.5) && (A.location == last.location)     A^x

N "CarSpeed_Slow"
Q A := ((closest, CarSpeed, null, null), (aggregate, null, avg, (-60^r, 0^r)),
        (multiple: separate, null, null, D_L), (closest, atomic, null, null))
P^n A.value < 7        A^n value := A.value;
P^x (A.value > 15) && (A.location == last.location)      A^x value := A.value;
"""

TABLE_5_10 = TABLE_5_10_A + TABLE_5_10_B_C

TABLE_5_11_A = """
N "Fire"
Q A := ((closest, Temperature, null, null), (closest, 0^r, null, null),
        (multiple: all, null, null, (-10, +10)), (closest, atomic, null, null))
P^n A.value > 50
P^x A.value < 30
"""


def _part(name: str, group: str, predicate: str) -> str:
    return f"""
N "{name}"
Q A := ((closest, Temperature, null, null), (closest, 0^r, null, null),
        (multiple: all, null, null, {group}), (closest, atomic, null, null))
P^n {predicate}
P^x true
"""


def _join(own: str, topic: str) -> str:
    return (
        f"{own} := ((closest, {topic}, null, null), (closest, 0^r, null, null),\n"
        "        (multiple: any, null, null, D_L), (closest, atomic, null, null));\n"
    )


TABLE_5_11 = (
    _part("Fire_EntRange1", "(-10, 0)", "A.value > 50")
    + _part("Fire_EntRange2", "(1, +10)", "A.value > 50")
    + _part("Fire_ExtRange1", "(-10, 0)", "A.value < 30")
    + _part("Fire_ExtRange2", "(1, +10)", "A.value < 30")
    + 'N "Fire"\nQ '
    + _join("A", "Fire_EntRange1")
    + _join("B", "Fire_EntRange2")
    + _join("C", "Fire_ExtRange1")
    + _join("D", "Fire_ExtRange2")
    + "P^n A.valid && B.valid\nP^x C.valid && D.valid\n"
)

TABLE_5_14_A = """
N "CarSpeed_Slow_HB"
Q A := ((closest, CarSpeed_Slow, null, null), (closest, 0^r, null, null),
        (closest, 0^r, null, null), (multiple: any, null, null, D_S))
P^n (last.valid == 0) || (last.time < 0^r - 10)
A^n location := A.location;
P^x true
A^x
"""

TABLE_5_14_B = """
N "TrafficCongestion_Reliable"
Q A := ((closest, IL_High, null, null), (closest, 0^r, null, null),
        (multiple: separate, null, null, D_L), (closest, ingress, null, null));
  B := ((closest, CarSpeed_Slow, null, null), (closest, 0^r, null, null),
        (multiple: separate, null, null, D_L), (multiple: any, null, null, D_S));
  C := ((closest, CarSpeed_Slow_HB, null, null), (closest, 0^r, null, null),
        (multiple: any, null, null, D_L), (closest, atomic, null, null))
P^n A.valid && B.valid && (A.location == B.location == C.location) && (C.time ≥ (0^r - 10))
A^n location := A.location; level := B.value;
P^x (!B.valid && (B.location == last.location)) || ((C.time < (0^r - 10)) && (C.location == last.location))
A^x location := last.location; level := B.value;
"""

TABLE_5_15 = """
N "Temperature_0.5Hz"
Q A := ((closest, Temperature, null, null), (closest, 0^r, null, null),
        (multiple: any, null, null, (-10, +10)), (closest, atomic, null, null))
P^n last.time ≤ 0^r - 2
A^n value = A.value
P^x true
A^x

N "Temperature_10%Change"
Q A := ((closest, Temperature, null, null), (closest, 0^r, null, null),
        (multiple: any, null, null, (-10, +10)), (closest, atomic, null, null))
P^n |A.value - last.value| ≥ 0.10*|last.value|
A^n value = A.value
P^x true
A^x
"""

TABLE_5_16 = """
N   "TrafficCongestionNear"
Q   A := ((closest, TrafficCongestion, null, null), (multiple: any, null, null, (0^r, 0^r)),
          (multiple: separate, null, null, D_L), (multiple: any, null, null, D_S));
    B := ((closest, User, null, null), (closest, 0^r, null, null),
          (closest, 0^r, null, null), (closest, atomic, null, null))
P^n |A.location - B.location| ≤ 2
A^n location := A.location
P^x true
A^x
"""

ALL = {
    "5.4": TABLE_5_4, "5.10": TABLE_5_10, "5.11 (a)": TABLE_5_11_A, "5.11": TABLE_5_11,
    "5.14 (a)": TABLE_5_14_A, "5.14 (b)": TABLE_5_14_B, "5.15": TABLE_5_15, "5.16": TABLE_5_16,
}  # fmt: skip
