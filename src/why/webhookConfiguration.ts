/** Whether the webhooks of a configuration are in the way of requests (L2): their Service, its endpoints, their failurePolicy. */
import type { MutatingWebhookConfiguration, ValidatingWebhookConfiguration } from '#api/gen/types/admissionregistration.v1'
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, type Explanation, kubectl, skiffWhy } from './answer.ts'
import { explainService } from './service.ts'
import type { View } from './view.ts'

type Configuration = Frozen<ValidatingWebhookConfiguration | MutatingWebhookConfiguration>
type Webhook = NonNullable<Configuration['webhooks']>[number]

export async function explainWebhooks({ kind, webhooks = [], metadata: { name = '' } }: Configuration, view: View): Promise<Explanation> {
  const causes: Cause[] = []
  for (const webhook of webhooks) {
    const found = await serviceCause(webhook, view)
    if (!found) continue
    const { failurePolicy = 'Fail' } = webhook
    const effect = failurePolicy === 'Fail' ? `so ${requestsOf(webhook)} are refused` : 'so it is skipped'
    const next = found.next ?? kubectl(undefined, 'edit', kind.toLowerCase(), name)
    causes.push({
      text: `webhook ${webhook.name} does not answer, ${effect}: ${found.text}`,
      evidence: `failurePolicy ${failurePolicy}, ${found.evidence}`,
      next,
    })
  }
  return { state: `${webhooks.length} webhooks; those at URLs were not called`, causes }
}

function requestsOf({ rules = [] }: Webhook): string {
  const texts = rules.map(({ operations = [], resources = [] }) => `${operations.join('|')} of ${resources.join(', ')}`)
  return texts.length === 0 ? 'no requests' : texts.slice(0, 3).join('; ')
}

async function serviceCause({ clientConfig: { service: reference } }: Webhook, view: View): Promise<Cause | undefined> {
  if (!reference) return undefined
  const { namespace, name, port = 443 } = reference
  const { object: service, isAbsent } = await view.get<Service>('services', namespace, name)
  const evidence = `clientConfig.service ${namespace}/${name}`
  if (isAbsent) return { text: `its Service ${namespace}/${name} does not exist`, evidence, next: kubectl(namespace, 'get', 'services') }
  if (!service) return undefined
  if (!(service.spec.ports ?? []).some((one) => one.port === port))
    return {
      text: `its Service ${namespace}/${name} has no port ${port}`,
      evidence: `${evidence}, port ${port}`,
      next: kubectl(namespace, 'describe', 'service', name),
    }
  const [cause] = (await explainService({ ...service, kind: 'Service' }, view)).causes
  return cause && { text: `Service ${namespace}/${name}: ${cause.text}`, evidence, next: skiffWhy('service', name, namespace) }
}
