"""Grove's end-to-end scenarios, each as a test, on whichever scheduler backend the harness is told to use."""
