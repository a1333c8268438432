"""The extractors and scores the study judges by. Frozen, and they know nothing of ``recap.blocks``.

A selector is tuned on its own identifiers; were these the judge's, tuning them would tune the score.
So the judge reads texts with rules of its own, which do not change with the product.
"""
