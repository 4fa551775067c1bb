// What the API answers, as docs/dashboard.md describes it. Fields that are empty are left out.

export interface Held {
  gang?: string;
  queue?: string;
  cells?: number;
  reserved?: boolean;
}

export type NodeState = "ready" | "cordoned" | "failed";

export interface NodeRow {
  name: string;
  path?: string[];
  cells?: number;
  held?: Held[];
  state?: NodeState;
  why?: string;
}

export interface GangRow {
  key: string;
  source: string;
  namespace: string;
  name: string;
  scheduler: string;
  queue: string;
  pods: number;
  minimum: number;
  placed: number;
  ready: number;
  state: string;
  nodes?: string[];
  spread?: string;
  workload?: string;
  reason?: string;
  gpus?: number;
  created?: string;
  waitingSince?: string;
}

export interface Share {
  quota: string;
  limit: string;
  fairShare: string;
  allocated: string;
  requested: string;
}

export interface QueueRow {
  line: {
    name: string;
    parent?: string;
    depth?: number;
    priority?: number;
    shares?: Record<string, Share>;
    pendingGangs?: number;
    problem?: string;
  };
  borrowing?: { gpus: number; lenders?: Record<string, number> };
}

export interface Unseen {
  what: string;
  reason: string;
}

export interface State {
  revision: string;
  at: string;
  source: string;
  unit: string;
  levels: string[];
  nodes: NodeRow[];
  gangs: GangRow[];
  queues: QueueRow[];
  unseen?: Unseen[];
  namespaces?: string[];
  trouble?: string;
}

export interface Delta {
  at: string;
  nodes?: NodeRow[];
  gangs?: GangRow[];
  goneNodes?: string[];
  goneGangs?: string[];
  queues?: QueueRow[];
  levels?: string[];
  trouble?: string;
}

export interface Member {
  name: string;
  group: string;
  status: string;
  node?: string;
  ready?: boolean;
  gpus?: number;
  reason?: string;
}

export interface Moment {
  at: string;
  what: string;
  text?: string;
  by?: string;
}

export interface GangPage {
  row: GangRow;
  members: Member[];
  moments: Moment[];
}

export interface Shortage {
  resource: string;
  amount: number;
  nodes?: number;
}

export interface DomainReport {
  level: string;
  domain: string;
  path?: string[];
  nodes: number;
  fits: number;
  needed: number;
  shortages?: Shortage[];
  possible?: boolean;
  capacity?: number;
}

export interface Remedy {
  changes: { lever?: string; text: string; command?: string }[];
  smallest?: boolean;
  price?: { evicted?: string[]; delayed?: string[] };
}

export interface WhyAnswer {
  answer: {
    subject: string;
    state: string;
    sentences?: string[];
    history?: string[];
    recorded?: string[];
    startsAnyway?: boolean;
    remedies?: Remedy[];
    tried?: number;
    exhausted?: boolean;
  };
  texts?: string[];
  domains?: DomainReport[];
  level?: string;
}

export interface WhatIfAnswer {
  added?: string[];
  placed?: { pod: string; gang: string; node: string; gpus?: number }[];
  evicted?: { pod: string; gang: string; node: string; beneficiary?: string; message?: string }[];
  pending?: { gang: string; pods: number; message: string }[];
  cycles?: number;
  settled?: boolean;
  note?: string;
}

export interface About {
  version: string;
  authentication: "kubeconfig" | "token";
  prometheus?: boolean;
}

export type Sample = [at: number, allocated: number, requested: number, fairShare: number | null];

export interface CycleRecord {
  number: number;
  at: string;
  seconds: number;
  pending: number;
  binds: number;
  evictions: number;
  unschedulable: number;
  spent?: [plugin: string, hook: string, seconds: number][];
  decisions?: { what: string; gang: string; namespace: string; pods: number; text?: string }[];
  more?: number;
}

export interface Cycles {
  scheduler: string;
  cycles?: CycleRecord[];
  problem?: string;
}
