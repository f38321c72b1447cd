"""The faces: one wire contract each over the same conversations, behind one gate."""
