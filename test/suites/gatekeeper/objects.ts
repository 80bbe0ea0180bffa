/** Templates in both languages of Gatekeeper, a constraint of each, and a mutation. */
const rego = `package notag
violation[{"msg": msg}] {
  container := input.review.object.spec.containers[_]
  endswith(container.image, ":latest")
  msg := sprintf("container <%v> has the image <%v>", [container.name, container.image])
}`

function template(kind: string, target: object): object {
  return {
    apiVersion: 'templates.gatekeeper.sh/v1',
    kind: 'ConstraintTemplate',
    metadata: { name: kind.toLowerCase() },
    spec: { crd: { spec: { names: { kind } } }, targets: [{ target: 'admission.k8s.gatekeeper.sh', ...target }] },
  }
}

function constraint(kind: string, name: string, kinds: readonly object[]): object {
  return { apiVersion: 'constraints.gatekeeper.sh/v1beta1', kind, metadata: { name }, spec: { match: { kinds, namespaces: ['default'] } } }
}

export const regoTemplate = template('NoLatestTag', { rego })
export const regoConstraint = constraint('NoLatestTag', 'no-latest', [{ apiGroups: [''], kinds: ['Pod'] }])

/** Gatekeeper makes a ValidatingAdmissionPolicy of it, which the API server evaluates. */
const validation = {
  expression: 'has(object.metadata.labels) && "team" in object.metadata.labels',
  messageExpression: '"object <" + object.metadata.name + "> has no team"',
}
export const celTemplate = template('NeedsTeam', {
  code: [{ engine: 'K8sNativeValidation', source: { generateVAP: true, validations: [validation] } }],
})
export const celConstraint = constraint('NeedsTeam', 'needs-team', [{ apiGroups: [''], kinds: ['ConfigMap'] }])

export const mutation = {
  apiVersion: 'mutations.gatekeeper.sh/v1',
  kind: 'AssignMetadata',
  metadata: { name: 'owner' },
  spec: {
    match: { scope: 'Namespaced', kinds: [{ apiGroups: [''], kinds: ['Pod'] }], namespaces: ['default'] },
    location: 'metadata.labels.owner',
    parameters: { assign: { value: 'platform' } },
  },
}

/** Its namespace takes pods that the restricted standard allows only. */
export function programPod(name: string, namespace: string): object {
  const securityContext = { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } }
  const container = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
  const containers = [{ name: 'manager', image: 'example.com/gatekeeper:1', securityContext: container }]
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec: { securityContext, containers } }
}

export function pod(name: string, image: string, namespace = 'default'): object {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec: { containers: [{ name: 'main', image }] } }
}

export function configMap(name: string, labels?: object): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default', ...(labels ? { labels } : {}) } }
}
