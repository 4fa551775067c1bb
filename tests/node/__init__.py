"""What ships, on a real node: the image, the chart, the printed manifests."""
