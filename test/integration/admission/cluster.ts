/** A server with its whole admission chain, and a webhook server, for tests. */
import { generateKeyPairSync } from 'node:crypto'
import type { MutatingWebhook, ValidatingWebhook } from '#api/gen/types/admissionregistration.v1'
import type { AdmissionAttributes, AdmissionPlugin } from '#apiserver/admission/admission'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { startWebhookServer, type WebhookServer } from '../../support/webhookServer.ts'
import { type Plain, plain } from '../crd/support.ts'

export interface AdmissionCluster {
  readonly api: TestApiServer
  readonly hooks: WebhookServer
  /** As an administrator. */
  readonly request: Plain['request']
  /** What admission noted for the audit log: key, value, level. */
  readonly notes: [key: string, value: string, level: string][]
}

/** Runs a test against a server of its own, whose authorizers allow every request. */
export async function withCluster(run: (cluster: AdmissionCluster) => Promise<void>): Promise<void> {
  const notes: AdmissionCluster['notes'] = []
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const serviceAccountKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const api = await startTestApiServer({
    deps: (registry) => {
      const security = createSecurity({ reader: registry.reader, clock: realClock, random: seededRandom(1), serviceAccountKey })
      const admission = security.admission.filter(({ name }) => name !== 'ServiceAccount' && name !== 'RBACEscalation')
      return { admission: [notingPlugin(notes), ...admission], connect: security.connect }
    },
  })
  const hooks = await startWebhookServer(['hook.default.svc'])
  try {
    await run({ api, hooks, request: plain(api.client).request, notes })
  } finally {
    await api.close()
    await hooks.close()
  }
}

/** Listens to what plugins after it note. */
function notingPlugin(notes: AdmissionCluster['notes']): AdmissionPlugin {
  const listen = (attributes: AdmissionAttributes) => {
    attributes.annotate = (key, value, level = 'Metadata') => void notes.push([key, value, level])
  }
  return { name: 'Noting', handles: () => true, admit: listen, validate: listen }
}

export const configurationPath = (kind: 'mutating' | 'validating', name = ''): string =>
  `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations${name && `/${name}`}`

type AnyWebhook = Partial<MutatingWebhook> & Partial<ValidatingWebhook>

/** A webhook for config maps; `more` overrides fields. */
export function webhook(hooks: WebhookServer, path: string, more: AnyWebhook = {}): AnyWebhook {
  return {
    name: `${path.slice(1)}.example.com`,
    clientConfig: hooks.client(path),
    rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
    admissionReviewVersions: ['v1', 'v1beta1'],
    sideEffects: 'None',
    // The system's own config maps are not part of the test.
    namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system', 'kube-public'] }] },
    ...more,
  }
}

export async function configure({ request }: AdmissionCluster, kind: 'mutating' | 'validating', name: string, webhooks: readonly AnyWebhook[]): Promise<void> {
  const body = { kind: `${kind === 'mutating' ? 'Mutating' : 'Validating'}WebhookConfiguration`, apiVersion: 'admissionregistration.k8s.io/v1' }
  await request('POST', configurationPath(kind), { ...body, metadata: { name }, webhooks })
}

export const configMaps = (namespace = 'default', name = ''): string => `/api/v1/namespaces/${namespace}/configmaps${name && `/${name}`}`

export const configMap = (name: string, data: Record<string, string> = { own: 'x' }, labels: Record<string, string> = {}) => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name, labels },
  data,
})
