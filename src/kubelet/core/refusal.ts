/** Why the kubelet refuses a pod (L3): the message of the pod's status after "Pod was rejected: ", and of an event. */
export interface Refusal {
  readonly reason: string
  readonly message: string
}
