/**
 * `skiff net`: which NetworkPolicies select a pod and whether a connection passes them, how a Service is carried, the routes of the nodes, and what stands in the
 * way of a connection (L4).
 */
import type { Command } from 'commander'
import { type ConnectionVerdict, type PolicyCheck, type PolicyDirection, type PolicyExplanation, policyDirections } from '#api/debug/networkPolicy'
import { type CliCommand, type CommandContext, resolveCluster } from '../command.ts'
import { CommandError, exitCodes } from '../exitCodes.ts'
import { defaultSslDirectory, describeNginx, findNginx } from '../net/nginx.ts'
import { type PolicyFlags, policyQuestion } from '../net/policyQuestion.ts'
import { createReader, namedObject, type Reader } from '../net/reader.ts'
import { describeRoutes, findRoutes } from '../net/route.ts'
import { describeService, findService } from '../net/service.ts'
import { describeTrace } from '../net/trace/describe.ts'
import { diagnose } from '../net/trace/diagnose.ts'
import { gatherFacts, type TraceFlags } from '../net/trace/gather.ts'
import { printFound } from '../output.ts'
import { type ConnectionFlags, withConnection, withConnectionFlags } from '../past/connection.ts'
import { table } from './status.ts'

interface Flags extends Partial<PolicyFlags> {
  readonly cluster?: string
  readonly output?: string
}

export const net: CliCommand = {
  name: 'net',
  register: (program, context) => {
    const command = program.command('net').description('how the network of a cluster decides')
    command
      .command('policy <pod>')
      .description('show the network policies that select a pod (NAME or NAMESPACE/NAME), what they allow, and whether a connection passes them')
      .option('-n, --namespace <namespace>', 'of the pods (default: default)')
      .option('--from <peer>', 'whether a connection from this pod or address passes')
      .option('--to <peer>', 'whether a connection to this pod or address passes')
      .option('--port <port>', 'of the destination: 80, 53/UDP, or a name (default: each port that the destination declares)')
      .option('--cluster <name>', 'the cluster, where there are several')
      .option('-o, --output <format>', 'json')
      .action((pod: string, flags: Flags) => showPolicies(context, pod, flags))
    withShownFlags(
      command
        .command('service <service>')
        .alias('svc')
        .description('show a Service (NAME or NAMESPACE/NAME): its endpoints, what cluster DNS answers, and the rules of each node that carry it')
        .option('-n, --namespace <namespace>', 'of the Service (default: default)'),
    ).action((text: string, flags: ShownFlags) =>
      print(context, flags, describeService, (reader, namespace) => {
        const { namespace: of, name } = namedObject(text, /^(?:svc|services?)\//, namespace)
        return findService(reader, of, name)
      }),
    )
    withShownFlags(
      command
        .command('nginx [ingress]')
        .description('show an Ingress (NAME or NAMESPACE/NAME), or all, as a configuration of nginx')
        .option('-n, --namespace <namespace>', 'of the Ingress (default: default)')
        .option('--ssl-dir <directory>', `where nginx finds HOST.crt and HOST.key (default: ${defaultSslDirectory})`),
    ).action((ingress: string | undefined, flags: ShownFlags & { readonly sslDir?: string }) =>
      print(context, flags, describeNginx, (reader, namespace) => findNginx(reader, namespace, ingress, flags.sslDir ?? defaultSslDirectory)),
    )
    withShownFlags(
      command
        .command('route [node]')
        .description('show the routes and neighbours of the nodes that belong to the pod network, and those that are missing or foreign'),
    ).action((node: string | undefined, flags: ShownFlags) => print(context, flags, describeRoutes, (reader) => findRoutes(reader, node)))
    withShownFlags(
      command
        .command('trace <pod> <target>')
        .description('show each hop from a pod to a target (a Service, a name, a URL, pod/NAME, ADDRESS:PORT), send a packet, and name what stands in the way')
        .option('-n, --namespace <namespace>', 'of the pod (default: default)')
        .option('--port <port>', 'of the target: a number, or the name of a port of the Service or pod')
        .option('--external', "the address of the Service's load balancer instead of its cluster IP"),
    ).action((pod: string, target: string, flags: ShownFlags & TraceFlags) => trace(context, pod, target, flags))
  },
}

interface ShownFlags extends ConnectionFlags {
  readonly namespace?: string
  readonly output?: string
}

const formats = ['json', 'yaml'] as const

function withShownFlags(command: Command): Command {
  return withConnectionFlags(command, 'a kubeconfig whose cluster and user are taken instead of a local cluster and its administrator').option(
    '-o, --output <format>',
    formats.join(', '),
  )
}

/** @returns what is printed */
async function show<T>(
  context: CommandContext,
  flags: ShownFlags,
  describe: (found: T) => string,
  find: (reader: Reader, namespace: string) => Promise<T>,
): Promise<T> {
  const { output } = flags
  const format = output === undefined ? 'text' : formats.find((one) => one === output)
  if (format === undefined) throw new CommandError('usage', `-o ${output}: expected ${formats.join(' or ')}`)
  return withConnection(context, flags, async ({ transport, namespace }) => {
    const found = await find(createReader(transport), flags.namespace ?? namespace)
    printFound(context, format, found, describe)
    return found
  })
}

async function print<T>(...args: Parameters<typeof show<T>>): Promise<void> {
  await show(...args)
}

async function trace(context: CommandContext, pod: string, target: string, flags: ShownFlags & TraceFlags): Promise<void> {
  const { clock, explainPolicies } = context
  const { passes } = await show(context, flags, describeTrace, async (reader, namespace) =>
    diagnose(await gatherFacts({ reader, explainPolicies, nowMs: clock.now() }, pod, target, { ...flags, namespace })),
  )
  if (passes === false) context.local.exitWith(exitCodes.internal)
}

async function showPolicies(context: CommandContext, pod: string, { cluster: named, output, namespace = 'default', ...flags }: Flags): Promise<void> {
  if (output !== undefined && output !== 'json') throw new CommandError('usage', `-o ${output}: expected json`)
  const cluster = await resolveCluster(context, named)
  const question = await policyQuestion((path, body) => context.clusters.ask(cluster, path, body), pod, { namespace, ...flags })
  printFound(context, output === 'json' ? 'json' : 'text', await context.explainPolicies(question), describePolicies)
}

export function describePolicies(found: PolicyExplanation): string {
  const facts = [
    ['pod:', found.pod],
    ['address:', found.addresses.join(', ') || 'none yet'],
    ['node:', found.node ?? 'none yet'],
  ]
  const selection = found.hostNetwork
    ? 'The pod is on the network of its node: no policy isolates it.\n'
    : policyDirections.map((direction) => selectionText(direction, found.selectedBy[direction])).join('')
  return [table(facts), selection, ...found.verdicts.map(verdictText)].join('\n')
}

function selectionText(direction: PolicyDirection, policies: PolicyExplanation['selectedBy'][PolicyDirection]): string {
  if (policies.length === 0) return `${direction}: no policy isolates the pod, everything is allowed\n`
  const lines = policies.flatMap(({ policy, rules, obstacle }) => [
    `  ${policy}${obstacle !== undefined ? ` allows nothing: ${obstacle}` : rules.length === 0 ? ' allows nothing' : ''}`,
    ...rules.map((rule, index) => `    ${index + 1}. ${rule}`),
  ])
  return `${direction}: only what one of these policies allows\n${lines.map((line) => `${line}\n`).join('')}`
}

function verdictText({ source, destination, protocol, port, allowed, checks }: ConnectionVerdict): string {
  return `${allowed ? 'allowed' : 'denied'}: ${source} -> ${destination} ${protocol} ${port}\n${checks.map((check) => `  ${check.direction} of ${check.of}: ${reasonOf(check)}\n`).join('')}`
}

const reasons: Readonly<Record<Exclude<PolicyCheck['because'], 'policies'>, string>> = {
  notIsolated: 'no policy isolates it',
  noPod: 'no address of a pod, so no policy isolates it',
  itself: 'a pod reaches itself',
  ownNode: 'a node and its own pods reach each other',
}

function reasonOf({ because, policies }: PolicyCheck): string {
  if (because !== 'policies') return reasons[because]
  const allowing = policies.filter(({ rules }) => rules.length > 0)
  if (allowing.length > 0) return `allowed by ${allowing.map(({ policy, rules }) => `${policy}, rule ${rules.join(', ')}`).join('; ')}`
  return `denied, no rule of these allows it: ${policies.map(({ policy }) => policy).join(', ')}`
}
