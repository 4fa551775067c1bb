// Command etcd is the etcd server of the pinned version, so that a control plane has one its API server can fully use.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
