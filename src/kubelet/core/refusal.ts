/** Why the kubelet refuses a pod (L3): the pod's status says it after "Pod was rejected: ", and an event repeats it. */
export interface Refusal {
  readonly reason: string
  readonly message: string
}
