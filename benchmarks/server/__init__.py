"""What the embedded server costs, beside kube-apiserver and on its own."""
