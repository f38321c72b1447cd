"""The face that speaks of chats: a snapshot and numbered frames, commands, trajectories (`/v1/chats`, `/v1/trajectories`).

`messages.py` and `snapshot.py` say what a chat looks like, `projection.py` what each event changes of that; `commands.py` turns
what is asked into commands. Words on this wire are the contract's: a conversation is a chat there, its frame a thread.
"""
