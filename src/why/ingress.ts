/** Why an Ingress serves nothing (L2): its class, its backends, its certificates, its address. */
import type { Secret, Service } from '#api/gen/types/core.v1'
import type { Ingress, IngressBackend, IngressClass } from '#api/gen/types/networking.v1'
import { loadBalancerAddresses } from '#api/helpers/services'
import { newestDefault } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, type Explanation, kubectl, skiffWhy } from './answer.ts'
import { explainService } from './service.ts'
import type { View } from './view.ts'

export async function explainIngress(ingress: Frozen<Ingress>, view: View): Promise<Explanation> {
  const addresses = loadBalancerAddresses(ingress)
  const causes = [...(await classCauses(ingress, view)), ...(await backendCauses(ingress, view)), ...(await certificateCauses(ingress, view))]
  const isServed = addresses.length > 0
  if (causes.length === 0 && !isServed) causes.push(await silentCause(ingress, view))
  return { state: isServed ? `its address is ${addresses.join(', ')}` : 'it has no address', causes }
}

async function classCauses(ingress: Frozen<Ingress>, view: View): Promise<readonly Cause[]> {
  const name = ingress.spec.ingressClassName ?? ingress.metadata.annotations?.['kubernetes.io/ingress.class']
  const next = kubectl(undefined, 'get', 'ingressclasses')
  if (name !== undefined) {
    const { isAbsent } = await view.get<IngressClass>('ingressclasses', undefined, name)
    return isAbsent ? [{ text: `its IngressClass ${name} does not exist`, evidence: `spec.ingressClassName ${name}`, next }] : []
  }
  const classes = await view.list<IngressClass>('ingressclasses', undefined)
  if (!classes || newestDefault(classes, ['ingressclass.kubernetes.io/is-default-class'])) return []
  const names = classes.map(({ metadata }) => metadata.name).join(', ')
  return [
    {
      text: `it names no IngressClass, and ${names === '' ? 'there is none' : `none of these is the default: ${names}`}`,
      evidence: 'spec.ingressClassName is absent',
      next,
    },
  ]
}

async function backendCauses({ spec, metadata: { namespace = '' } }: Frozen<Ingress>, view: View): Promise<readonly Cause[]> {
  const backends = [
    ...(spec.defaultBackend ? [spec.defaultBackend] : []),
    ...(spec.rules ?? []).flatMap(({ http }) => (http?.paths ?? []).map(({ backend }) => backend)),
  ]
  const causes = new Map<string, Cause>()
  for (const backend of backends) {
    const cause = await backendCause(backend, namespace, view)
    if (cause) causes.set(cause.text, cause)
  }
  return [...causes.values()]
}

async function backendCause({ service: reference }: Frozen<IngressBackend>, namespace: string, view: View): Promise<Cause | undefined> {
  if (!reference) return undefined
  const { name, port = {} } = reference
  const { object: service, isAbsent } = await view.get<Service>('services', namespace, name)
  const wanted = port.name ?? port.number
  const evidence = `spec.rules, backend ${name}:${wanted}`
  if (isAbsent) return { text: `its backend names Service ${name}, which does not exist`, evidence, next: kubectl(namespace, 'get', 'services') }
  if (!service) return undefined
  const ports = service.spec.ports ?? []
  if (!ports.some((one) => (port.name === undefined ? one.port === port.number : one.name === port.name)))
    return {
      text: `its backend names port ${wanted} of Service ${name}, which has: ${ports.map((one) => (one.name ? `${one.name} (${one.port})` : one.port)).join(', ')}`,
      evidence,
      next: kubectl(namespace, 'describe', 'service', name),
    }
  const [cause] = (await explainService({ ...service, kind: 'Service' }, view)).causes
  return cause && { text: `Service ${name}: ${cause.text}`, evidence: cause.evidence, next: skiffWhy('service', name, namespace) }
}

async function certificateCauses({ spec, metadata: { namespace } }: Frozen<Ingress>, view: View): Promise<readonly Cause[]> {
  const causes: Cause[] = []
  for (const { secretName } of spec.tls ?? []) {
    if (!secretName) continue
    const { object: secret, isAbsent } = await view.get<Secret>('secrets', namespace, secretName)
    const next = kubectl(namespace, 'describe', 'secret', secretName)
    if (isAbsent) causes.push({ text: `its TLS Secret ${secretName} does not exist`, evidence: `spec.tls, secretName ${secretName}`, next })
    else if (secret && !(secret.data?.['tls.crt'] && secret.data['tls.key']))
      causes.push({ text: `its TLS Secret ${secretName} has no tls.crt and tls.key`, evidence: `spec.tls, secretName ${secretName}`, next })
  }
  return causes
}

async function silentCause(ingress: Frozen<Ingress>, view: View): Promise<Cause> {
  const name = ingress.spec.ingressClassName
  const { object } = name === undefined ? { object: undefined } : await view.get<IngressClass>('ingressclasses', undefined, name)
  const controller = object?.spec?.controller
  return {
    text: `the controller${controller === undefined ? '' : ` ${controller}`} of its class has given it no address: check that it runs`,
    evidence: 'status.loadBalancer is empty',
    next: kubectl(ingress.metadata.namespace, 'describe', 'ingress', ingress.metadata.name ?? ''),
  }
}
