/** A Prometheus that selects everything labelled for it, a monitor, rules, an Alertmanager, and the webhook for rules. */
const namespace = 'default'
const labels = { team: 'web' }
const selector = { matchLabels: labels }

function monitoring(kind: string, name: string, spec: object, extra: object = {}): object {
  return { apiVersion: 'monitoring.coreos.com/v1', kind, metadata: { name, namespace, ...extra }, spec }
}

export const serviceAccount = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'prometheus', namespace } }

export const prometheus = monitoring('Prometheus', 'main', {
  replicas: 2,
  serviceAccountName: 'prometheus',
  serviceMonitorSelector: selector,
  ruleSelector: selector,
  scrapeInterval: '45s',
  storage: { volumeClaimTemplate: { spec: { resources: { requests: { storage: '1Gi' } } } } },
})

export const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace, labels },
  spec: { selector: labels, ports: [{ name: 'metrics', port: 80 }] },
}

export const serviceMonitor = monitoring('ServiceMonitor', 'web', { selector, endpoints: [{ port: 'metrics', path: '/stats' }] }, { labels })

export function rule(name: string, expr: string): object {
  return monitoring('PrometheusRule', name, { groups: [{ name: 'web', rules: [{ alert: 'WebIsDown', expr, for: '5m' }] }] }, { labels })
}

export const alertmanager = monitoring('Alertmanager', 'main', { replicas: 1 })

/** @param ca of the webhook's certificate, as PEM */
export function ruleWebhook(port: number, ca: string): object {
  const clientConfig = { url: `https://127.0.0.1:${port}/admission-prometheusrules/validate`, caBundle: Buffer.from(ca).toString('base64') }
  const rules = [{ apiGroups: ['monitoring.coreos.com'], apiVersions: ['*'], operations: ['CREATE', 'UPDATE'], resources: ['prometheusrules'] }]
  const webhook = { name: 'prometheusrulevalidate.monitoring.coreos.com', clientConfig, rules, sideEffects: 'None', admissionReviewVersions: ['v1'] }
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration', metadata: { name: 'rules' }, webhooks: [webhook] }
}

/** Has a field that v1beta1 calls differently. */
export const alertmanagerConfig = {
  apiVersion: 'monitoring.coreos.com/v1alpha1',
  kind: 'AlertmanagerConfig',
  metadata: { name: 'web', namespace },
  spec: { route: { receiver: 'none' }, receivers: [{ name: 'none' }], muteTimeIntervals: [{ name: 'nights', timeIntervals: [] }] },
}

/** A patch of the CustomResourceDefinition. */
export function conversion(port: number, ca: string): object {
  const clientConfig = { url: `https://127.0.0.1:${port}/convert`, caBundle: Buffer.from(ca).toString('base64') }
  return { spec: { conversion: { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1beta1', 'v1alpha1'] } } } }
}
