"""What stands between the transcript and the prompt: requests, the plan, the queue, the composer, two status lines."""
