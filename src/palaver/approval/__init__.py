"""Approvals: policy, rules, grants, and what becomes of a tool call that another program wants to make."""
