/** The messages with which admission refuses an object (L1), as upstream words them. Advice about requests and explanations of controllers read them. */
export const refusalMessages = {
  /** Quota, requested, used, limited. */
  quotaExceeded: /exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)$/,
  /** Quota, and what each container must set. */
  quotaUnspecified: /failed quota: ([^\s:]+): must specify (.+)$/s,
  /** Level, and the violations. */
  podSecurity: /violates PodSecurity "([^"]+)": (.+)$/s,
  /** The webhook, and its message. */
  webhookDenied: /admission webhook "([^"]+)" denied the request(?:: (.+))?/s,
  /** The webhook, and the failure of the call. */
  webhookFailed: /failed calling webhook "([^"]+)": (.+)$/s,
  /** Policy, binding, and the message of the policy. */
  policyDenied: /ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: (.+)$/s,
  /** Namespace and name. */
  serviceAccount: /error looking up service account ([^\s/]+)\/([^\s:]+): /,
  priorityClass: /no PriorityClass with name (\S+) was found/,
  runtimeClass: /RuntimeClass "([^"]+)" not found/,
  /** The namespace. */
  terminating: /unable to create new content in namespace (\S+) because it is being terminated/,
} as const
