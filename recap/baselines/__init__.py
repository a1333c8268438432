"""Foreign methods that shorten a history, one each, behind one interface and one accounting.

``method`` holds what a method is given and what it returns. Recency, random, BM25 and the paper's
policy are recipes of ``recap.select``; here stands what is not ours.
"""
