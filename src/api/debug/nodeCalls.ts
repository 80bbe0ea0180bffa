/** What a node says in node.skiff.dev of the calls to its container runtime, to CSI drivers and to CNI plugins (L1). The kubelet keeps it; `skiff calls` reads it. */

export interface NodeCall {
  readonly api: 'CRI' | 'CSI' | 'CNI'
  /** For CNI the command and the plugin: `ADD ptp`. */
  readonly method: string
  /** RFC 3339, with milliseconds. */
  readonly time: string
  /** Absent: there is no answer yet. */
  readonly milliseconds?: number | undefined
  /** OK, the gRPC code, or FAILED of a CNI plugin. Absent: there is no answer yet. */
  readonly code?: string | undefined
  /** NAMESPACE/NAME. Absent: the call is not for one pod, or an earlier kubelet started the pod. */
  readonly pod?: string | undefined
  /** What the CSI driver calls the volume. */
  readonly volume?: string | undefined
  /** JSON, shortened where it is long. Secrets are hidden. */
  readonly request: string
  /** The same for the answer, or the message of the driver or plugin. */
  readonly answer?: string | undefined
}

export interface NodeCalls {
  readonly note?: string | undefined
  /** The oldest first. */
  readonly calls?: readonly NodeCall[] | undefined
}
