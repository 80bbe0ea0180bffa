/** What a node says in node.skiff.dev of its calls to the container runtime and to CSI drivers (L1). The kubelet records it; `skiff calls` reads it. */

export interface NodeCall {
  readonly api: 'CRI' | 'CSI'
  readonly method: string
  /** RFC 3339, with milliseconds. */
  readonly time: string
  /** Absent: there is no answer yet. */
  readonly milliseconds?: number | undefined
  /** OK, or the gRPC code. Absent: there is no answer yet. */
  readonly code?: string | undefined
  /** NAMESPACE/NAME. Absent: the call is not for one pod, or an earlier kubelet started the pod. */
  readonly pod?: string | undefined
  /** What the CSI driver calls the volume. */
  readonly volume?: string | undefined
  /** JSON, shortened where it is long. Secrets are hidden. */
  readonly request: string
  /** The same for the answer, or the driver's message. */
  readonly answer?: string | undefined
}

export interface NodeCalls {
  readonly note?: string | undefined
  /** The oldest first. */
  readonly calls?: readonly NodeCall[] | undefined
}
