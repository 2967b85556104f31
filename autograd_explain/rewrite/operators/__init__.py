"""Small general edits, each usable at any statement of the program.

A cause proposes what it knows to be wrong.  An operator knows nothing of causes: it says where in a
statement its kind of edit fits, and whoever searches for a repair decides by running it.
"""
