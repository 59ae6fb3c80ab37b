"""README of an emission (being written)."""
def readme_text(plan, program, prediction, timing, board):
    return ""
