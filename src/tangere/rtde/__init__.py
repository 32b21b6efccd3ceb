"""What a UR controller speaks: RTDE, the primary interface and the dashboard, as bytes and as small clients.

Both sides use it: the clients (a plant, a recorder, the doctor) and the virtual controller. It knows no arm model.
"""
