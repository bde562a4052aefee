"""What an answer was made of: `/context`, `/why`, and `hearthbot prompt show`.

No model is asked, and others hear no details of a turn that is not theirs.
"""
