"""The tool `fetch`: which addresses may be visited, the visit, and pages as text."""
