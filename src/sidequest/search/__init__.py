"""Trials: whole training runs that a method asks for, each paid for once.

May import `learning`, `methods.base`, `recipe` and `tasks`. Only this package knows where and when trials run.
"""
