// Workloads to begin with on the What if page.

export interface Example {
  title: string;
  /** Returns the manifest, in a queue if there is one to name. */
  text: (queue: string) => string;
}

export const EXAMPLES: Record<string, Example> = {
  training: {
    title: "training: 4 workers of 8 GPUs in one rack",
    text: (queue) => set("what-if-training", 4, 8, "rack", queue),
  },
  large: {
    title: "training: 16 workers of 8 GPUs in one block",
    text: (queue) => set("what-if-large", 16, 8, "block", queue),
  },
  inference: {
    title: "inference: 2 servers of 4 GPUs, anywhere",
    text: (queue) => set("what-if-inference", 2, 4, "", queue),
  },
  job: {
    title: "a Job of 8 pods with 1 GPU each",
    text: (queue) => `apiVersion: batch/v1
kind: Job
metadata:
  name: what-if-job${labels(queue)}
spec:
  parallelism: 8
  completions: 8
  template:
    metadata:
      labels: {${queue ? `kai.scheduler/queue: ${queue}` : ""}}
    spec:
      schedulerName: spinney-scheduler
      restartPolicy: Never
      containers:
        - name: main
          image: trainer
          resources:
            requests: {cpu: "1"}
            limits: {nvidia.com/gpu: 1}
`,
  },
};

function labels(queue: string): string {
  return queue ? `\n  labels:\n    kai.scheduler/queue: ${queue}` : "";
}

function set(name: string, workers: number, gpus: number, within: string, queue: string): string {
  const topology = within
    ? `    topologyConstraint:
      topologyName: gpu-topology
      pack:
        required: ${within}
`
    : "";
  return `apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: ${name}${labels(queue)}
spec:
  replicas: 1
  template:
${topology}    cliques:
      - name: worker
        spec:
          roleName: worker
          replicas: ${workers}
          podSpec:
            schedulerName: spinney-scheduler
            containers:
              - name: main
                image: trainer
                resources:
                  requests: {cpu: "4"}
                  limits: {nvidia.com/gpu: ${gpus}}
`;
}
