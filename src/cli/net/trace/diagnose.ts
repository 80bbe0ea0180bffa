/**
 * Judges a connection hop by hop (L4), pure: from what was read and probed to findings, in the order of causes. A fault that an earlier one explains comes after
 * it, so that the first fault is the culprit: endpoints.ts has the hops behind a Service.
 */
import { hasClusterIp, loadBalancerAddresses } from '#api/helpers/services'
import { hostPort } from '#api/machinery/ip'
import { parseTime } from '#base/time'
import { endpointHops } from './endpoints.ts'
import type { Hop, IngressFacts, ServiceFacts, Trace, TraceFacts } from './facts.ts'
import { fault, nodeHop, ok, unknown } from './hops.ts'

export function diagnose(facts: TraceFacts): Trace {
  const hops = withoutRepetition([
    ...sourceHops(facts),
    ...(facts.ingress ? [ingressHop(facts.ingress)] : []),
    ...(facts.service?.isExternal ? [loadBalancerHop(facts.service)] : []),
    // Cluster DNS is a Service, too: when the proxy has stopped, its names are not resolved either.
    ...(facts.service ? rulesHop(facts.service) : []),
    ...(facts.target.host === undefined ? [] : [nameHop(facts)]),
    ...(facts.service ? serviceHops(facts.service, facts.target.port) : []),
    ...endpointHops(facts),
    ...frontHops(facts),
  ])
  const passes = passesOf(facts)
  const first = hops.find(({ state }) => state === 'fault')
  const culprit = passes !== true && first?.cause !== undefined ? { cause: first.cause, text: first.text } : undefined
  const { pod, target } = facts
  return { pod: `${pod.metadata.namespace}/${pod.metadata.name}`, target: target.text, hops, passes: passes ?? (culprit ? false : undefined), culprit }
}

/** Several endpoints may be on one node. */
function withoutRepetition(hops: readonly Hop[]): Hop[] {
  return hops.filter(({ hop, text }, index) => hops.findIndex((one) => one.hop === hop && one.text === text) === index)
}

/** What the probes say; undefined: nothing was probed. */
function passesOf({ front, direct, nowMs, target, resolver, answers, service, ingress }: TraceFacts): boolean | undefined {
  const isUnresolved = target.host !== undefined && resolver.found !== undefined && !answers.some(({ records = [] }) => records.length > 0)
  const balanced = service?.isExternal ? service.service.found : ingress?.ingress
  if (isUnresolved || (balanced && loadBalancerAddresses(balanced).length === 0)) return false
  // The way through the load balancer is the question, and nothing was sent there.
  if (!front && (service?.isExternal || ingress)) return undefined
  if (!front && direct.length === 0) return undefined
  return [...(front ? [front] : []), ...direct].every((result) => result.outcome === 'connected' && certificateFault(result, nowMs) === undefined)
}

function sourceHops({ pod, nodes }: TraceFacts): Hop[] {
  const { nodeName } = pod.spec
  const { phase, podIP } = pod.status ?? {}
  const name = `${pod.metadata.namespace}/${pod.metadata.name}`
  if (nodeName === undefined) return [fault('pod', 'source', `the pod ${name} is on no node yet`)]
  const where = `${name} on ${nodeName}`
  const hops = [phase === 'Running' && podIP ? ok('pod', `${where}, ${podIP}`) : fault('pod', 'source', `the pod ${where} does not run: ${phase ?? 'Pending'}`)]
  // A node that does not answer explains everything after it.
  return [...nodeHop(nodes, nodeName), ...hops]
}

function ingressHop({ ingress, classes }: IngressFacts): Hop {
  const name = `${ingress.metadata.namespace}/${ingress.metadata.name}`
  const className = ingress.spec?.ingressClassName ?? ingress.metadata.annotations?.['kubernetes.io/ingress.class']
  const addresses = loadBalancerAddresses(ingress)
  if (addresses.length > 0) return ok('ingress', `${name}, class ${className ?? 'default'}, at ${addresses.join(', ')}`)
  if (classes.notShown !== undefined)
    return fault('ingress', 'class', `no controller has set an address on the Ingress ${name} (classes not shown: ${classes.notShown})`)
  const known = (classes.found ?? []).map(({ metadata }) => metadata.name).join(', ') || 'none'
  if (className === undefined) return fault('ingress', 'class', `the Ingress ${name} names no class and no controller has taken it up; classes: ${known}`)
  const found = classes.found?.find(({ metadata }) => metadata.name === className)
  if (!found) return fault('ingress', 'class', `the Ingress ${name} names the class "${className}", which does not exist; classes: ${known}`)
  return fault(
    'ingress',
    'class',
    `the controller ${found.spec?.controller} of the class "${className}" has set no address on the Ingress ${name}: it does not run, or refuses it`,
  )
}

function loadBalancerHop({ namespace, name, service }: ServiceFacts): Hop {
  const { found } = service
  if (!found) return unknown('load balancer', `the Service ${namespace}/${name} is not shown`)
  const { type, loadBalancerClass } = found.spec
  if (type !== 'LoadBalancer') return fault('load balancer', 'class', `the Service ${namespace}/${name} is of type ${type ?? 'ClusterIP'}, not LoadBalancer`)
  const addresses = loadBalancerAddresses(found)
  if (addresses.length > 0) return ok('load balancer', addresses.join(', '))
  const why =
    loadBalancerClass === undefined
      ? 'no node can serve its ports yet'
      : `it asks for the class "${loadBalancerClass}", and no controller of that class has served it`
  return fault('load balancer', 'class', `the Service ${namespace}/${name} has no load balancer address: ${why}`)
}

function nameHop({ target, resolver, answers, service, pod, dnsRules }: TraceFacts): Hop {
  if (resolver.notShown !== undefined) return unknown('name', `not resolved: ${resolver.notShown}`)
  const good = answers.find(({ records = [] }) => records.length > 0)
  if (good) return ok('name', `${good.name} is ${good.records?.join(', ')} (by ${good.server})`)
  const { dnsPolicy = 'ClusterFirst', hostNetwork } = pod.spec
  const servers = resolver.found?.servers ?? []
  const asked = `${target.host}: ${[...new Set(answers.map(({ code }) => code))].join(', ') || 'no server'} from ${servers.join(', ') || 'nobody'}`
  const usesClusterDns = dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && !hostNetwork)
  if (service?.service.found && !usesClusterDns) {
    const policy = `dnsPolicy ${dnsPolicy}${hostNetwork ? ' with hostNetwork' : ''}`
    return fault('name', 'dnsPolicy', `the pod has ${policy} and so does not ask cluster DNS for the Service; ${asked}`)
  }
  const silence = dnsRules && rulesFault(dnsRules)
  if (silence) return { ...silence, text: `no name server answers: ${silence.text}` }
  if (service && isAbsent(service)) return absentService(service, asked)
  return fault('name', 'name', `the name is not resolved; ${asked}`)
}

const isAbsent = ({ service }: ServiceFacts) => service.found === undefined && service.notShown === undefined

function absentService({ namespace, name }: ServiceFacts, more: string): Hop {
  return fault('service', 'service', `there is no Service ${name} in the namespace ${namespace}; ${more}`)
}

function serviceHops(facts: ServiceFacts, wanted: string | undefined): Hop[] {
  const { namespace, name, service, port } = facts
  if (isAbsent(facts)) return [absentService(facts, 'the name leads elsewhere')]
  const { found, notShown } = service
  if (!found) return [unknown('service', `${namespace}/${name} is not shown: ${notShown}`)]
  const ports = (found.spec.ports ?? []).map((one) => `${one.port}${one.name ? ` (${one.name})` : ''}`).join(', ') || 'none'
  if (!port) return [fault('service', 'service', `the Service ${namespace}/${name} has no port ${wanted ?? '(name one with --port)'}; it has: ${ports}`)]
  const address = found.spec.type === 'ExternalName' ? found.spec.externalName : found.spec.clusterIP
  return [
    ok(
      'service',
      `${namespace}/${name}, ${found.spec.type ?? 'ClusterIP'} ${address} port ${port.port}/${port.protocol ?? 'TCP'} to ${port.targetPort ?? port.port}`,
    ),
  ]
}

function rulesHop({ service, rules }: ServiceFacts): Hop[] {
  if (!service.found || !hasClusterIp(service.found)) return []
  if (rules.notShown !== undefined) return [unknown('proxy', `rules not shown: ${rules.notShown}`)]
  const problem = rulesFault(rules)
  if (problem) return [problem]
  const { mode, note, rules: found = [] } = rules.found ?? {}
  if (mode === undefined || found.length === 0) return [unknown('proxy', note ?? 'no rules are shown')]
  return [ok('proxy', `${mode}, rules on the node of the pod: ${found.length}`)]
}

/** What of the proxy's work is missing on the pod's node. */
function rulesFault({ found }: ServiceFacts['rules']): Hop | undefined {
  const { rules = [] } = found ?? {}
  const missing = rules.filter(({ lines }) => lines === undefined)
  if (missing.length > 0)
    return fault(
      'proxy',
      'proxy',
      `the kernel of the pod's node lacks ${missing.length} of ${rules.length} rules of the Service (${missing[0]?.place}): the proxy has stopped or cannot write`,
    )
  return found?.isStopped ? fault('proxy', 'proxy', "the service proxy does not run on the pod's node") : undefined
}

function frontHops({ front, notProbed, nowMs, direct }: TraceFacts): Hop[] {
  if (notProbed !== undefined) return [unknown('connection', `not probed: ${notProbed}`)]
  const hops: Hop[] = []
  if (front) {
    const where = hostPort(front.address, front.port)
    hops.push(
      front.outcome === 'connected'
        ? ok('connection', `${where} accepts connections of the pod`)
        : fault('connection', 'connection', `${where} does not: ${front.outcome}`),
    )
  }
  const [shown] = [...(front ? [front] : []), ...direct].filter(({ certificateSubject }) => certificateSubject !== undefined)
  if (!shown) return hops
  const problem = certificateFault(shown, nowMs)
  const subject = `of ${shown.certificateSubject || 'no name'}`
  return [
    ...hops,
    problem === undefined
      ? ok('certificate', `${subject}, until ${shown.certificateNotAfter ?? 'a time that nobody can read'}`)
      : fault('certificate', 'certificate', `the certificate ${subject} ${problem}`),
  ]
}

function certificateFault(
  { certificateNotBefore = '', certificateNotAfter = '', certificateNameFault }: NonNullable<TraceFacts['front']>,
  nowMs: number,
): string | undefined {
  if ((parseTime(certificateNotAfter) ?? nowMs) < nowMs) return `expired at ${certificateNotAfter}`
  if ((parseTime(certificateNotBefore) ?? nowMs) > nowMs) return `is valid from ${certificateNotBefore} only`
  return certificateNameFault === undefined ? undefined : `is not one of the name: ${certificateNameFault}`
}
