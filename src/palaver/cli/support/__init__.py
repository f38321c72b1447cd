"""What the commands share: options, output, exit codes, the connection to the server."""
