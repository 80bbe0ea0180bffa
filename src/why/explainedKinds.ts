/** The kinds with a question of their own (L2), by resource and group: apart from the questions, so that the page can name them without loading their code. */
export const explainedKinds = [
  'apiservices.apiregistration.k8s.io',
  'certificatesigningrequests.certificates.k8s.io',
  'cronjobs.batch',
  'customresourcedefinitions.apiextensions.k8s.io',
  'daemonsets.apps',
  'deployments.apps',
  'gateways.gateway.networking.k8s.io',
  'grpcroutes.gateway.networking.k8s.io',
  'httproutes.gateway.networking.k8s.io',
  'ingresses.networking.k8s.io',
  'jobs.batch',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'nodes',
  'persistentvolumeclaims',
  'persistentvolumes',
  'poddisruptionbudgets.policy',
  'pods',
  'replicasets.apps',
  'replicationcontrollers',
  'services',
  'statefulsets.apps',
  'tlsroutes.gateway.networking.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
] as const

export type ExplainedKind = (typeof explainedKinds)[number]
