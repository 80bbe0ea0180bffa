/** `skiff token create|list|delete` (L4): bootstrap tokens, with which machines join a cluster. Upstream: kubeadm token (v1.36). */
import { humanDuration, parseDuration } from '#api/machinery/duration'
import { parseYaml } from '#api/machinery/yaml'
import { formatTime, parseTime } from '#base/time'
import { bodyOf } from '../answers.ts'
import { bootstrapToken, bootstrapTokenSecret, secretsPath, tokenPrefix, tokenType } from '../bootstrapToken.ts'
import { type CliCommand, type CommandContext, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import { publicKeyHash } from '../publicKeyHash.ts'
import { givenSecret } from '../secretFile.ts'
import { table } from './status.ts'

const nodeGroup = 'system:bootstrappers:kubeadm:default-node-token'

export const token: CliCommand = {
  name: 'token',
  register: (program, context) => {
    const command = program.command('token').description('bootstrap tokens, with which machines join a cluster (skiff join)')
    command
      .command('create')
      .description('make a token and print it')
      .option('--cluster <name>', 'the cluster')
      .option('--ttl <duration>', 'how long it is valid; 0: it does not expire', '24h')
      .option('--description <text>', 'what it is for')
      .option('--print-join-command', 'print the whole command to join with')
      .option('--certificate-key <key>', 'print the command for a control plane, with the key that skiff certs upload has printed')
      .option('--certificate-key-file <file>', 'a file with that key, or - for standard input: every user of the machine can read the arguments of a command')
      .action(async (flags: CreateFlags) => create(context, await resolveCluster(context, flags.cluster), flags))
    command
      .command('list')
      .alias('ls')
      .description('list the tokens')
      .option('--cluster <name>', 'the cluster')
      .option('-o, --output <format>', 'json')
      .action(async (flags: { cluster?: string; output?: string }) => list(context, await resolveCluster(context, flags.cluster), flags.output))
    command
      .command('delete <token>')
      .description('delete a token, named by its first six characters or whole')
      .option('--cluster <name>', 'the cluster')
      .action(async (named: string, flags: { cluster?: string }) => remove(context, await resolveCluster(context, flags.cluster), named))
  },
}

interface CreateFlags {
  readonly cluster?: string
  readonly ttl: string
  readonly description?: string
  readonly printJoinCommand?: boolean
  readonly certificateKey?: string
  readonly certificateKeyFile?: string
}

async function create(context: CommandContext, cluster: string, flags: CreateFlags): Promise<void> {
  const { ttl, description, printJoinCommand, certificateKey, certificateKeyFile } = flags
  const ttlMs = durationOf(ttl)
  const keyFlag = certificateKey !== undefined ? '--certificate-key' : certificateKeyFile !== undefined ? '--certificate-key-file' : undefined
  if (keyFlag !== undefined && !printJoinCommand) throw new CommandError('usage', `${keyFlag} needs --print-join-command`)
  const key = await givenSecret('certificate-key', certificateKey, certificateKeyFile)
  const text = await createToken(context, cluster, ttlMs, description)
  const line = !printJoinCommand
    ? text
    : key === undefined
      ? await joinCommand(context, cluster, text)
      : certificateKey === undefined
        ? await controlPlaneCommand(context, cluster, text, key)
        : `${await joinCommand(context, cluster, text)} --control-plane --certificate-key ${key}`
  context.stdout.write(`${line}\n`)
}

/** @param ttlMs 0: it does not expire */
export async function createToken(context: CommandContext, cluster: string, ttlMs: number, description?: string): Promise<string> {
  const made = bootstrapToken()
  const expiresMs = ttlMs === 0 ? undefined : context.clock.now() + ttlMs
  const body = bootstrapTokenSecret(made, { expiresMs, usages: ['authentication', 'signing'], group: nodeGroup, description })
  bodyOf(cluster, await context.clusters.ask(cluster, secretsPath, body))
  return `${made.id}.${made.secret}`
}

/** The command for a control plane, which takes the key from standard input. `echo` is a part of the shell, so that no process has the key as an argument. */
export async function controlPlaneCommand(context: CommandContext, cluster: string, token: string, key: string): Promise<string> {
  return `echo ${key} | ${await joinCommand(context, cluster, token)} --control-plane --certificate-key-file -`
}

/** With the address that the cluster gives to machines: the one of the kubeconfig is for this host alone. */
async function joinCommand({ clusters }: CommandContext, cluster: string, text: string): Promise<string> {
  const { data } = JSON.parse(bodyOf(cluster, await clusters.ask(cluster, '/api/v1/namespaces/kube-public/configmaps/cluster-info'))) as ClusterInfo
  const { clusters: described } = parseYaml(data.kubeconfig) as { readonly clusters: readonly [{ readonly cluster: { readonly server: string } }] }
  const { ca } = await clusters.kubeconfig(cluster)
  return `skiff join ${new URL(described[0].cluster.server).host} --token ${text} --discovery-token-ca-cert-hash sha256:${publicKeyHash(ca)}`
}

interface ClusterInfo {
  readonly data: { readonly kubeconfig: string }
}

function durationOf(text: string): number {
  if (text === '0') return 0
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= 1000) return ms
  throw new CommandError('usage', `--ttl ${text}: expected a duration such as 24h or 30m, or 0`)
}

interface TokenSecret {
  readonly metadata: { readonly name: string }
  readonly data?: Readonly<Record<string, string>>
}

export interface ListedToken {
  readonly id: string
  /** In milliseconds since the epoch; absent: it does not expire. */
  readonly expiresMs?: number
  readonly usages: readonly string[]
  readonly description: string
  readonly groups: readonly string[]
}

async function list(context: CommandContext, cluster: string, output: string | undefined): Promise<void> {
  if (output !== undefined && output !== 'json') throw new CommandError('usage', `-o ${output}: expected json`)
  const answer = bodyOf(cluster, await context.clusters.ask(cluster, `${secretsPath}?fieldSelector=type%3D${encodeURIComponent(tokenType)}`))
  const { items } = JSON.parse(answer) as { readonly items: readonly TokenSecret[] }
  const now = context.clock.now()
  printFound(context, output ?? 'text', items.map(listed), (found) =>
    table([
      ['TOKEN', 'TTL', 'EXPIRES', 'USAGES', 'DESCRIPTION', 'EXTRA GROUPS'],
      ...found.map(({ id, expiresMs, usages, description, groups }) => [
        id,
        expiresMs === undefined ? '<forever>' : expiresMs <= now ? '<invalid>' : humanDuration(expiresMs - now),
        expiresMs === undefined ? '<never>' : formatTime(expiresMs),
        usages.join(',') || '<none>',
        description || '<none>',
        groups.join(',') || '<none>',
      ]),
    ]),
  )
}

function listed({ metadata, data = {} }: TokenSecret): ListedToken {
  const text = (key: string) => Buffer.from((Object.hasOwn(data, key) ? data[key] : '') ?? '', 'base64').toString()
  const expiration = text('expiration')
  return {
    id: metadata.name.slice(tokenPrefix.length),
    ...(expiration === '' ? {} : { expiresMs: parseTime(expiration) ?? 0 }),
    usages: ['authentication', 'signing'].filter((usage) => text(`usage-bootstrap-${usage}`) === 'true'),
    description: text('description'),
    groups: text('auth-extra-groups')
      .split(',')
      .filter((group) => group !== ''),
  }
}

async function remove(context: CommandContext, cluster: string, named: string): Promise<void> {
  const [, id] = /^([a-z0-9]{6})(\.[a-z0-9]{16})?$/.exec(named) ?? []
  if (id === undefined) throw new CommandError('usage', 'expected a token, or its first six characters of a-z and 0-9')
  const answer = await context.clusters.ask(cluster, `${secretsPath}/${tokenPrefix}${id}`, undefined, 'DELETE')
  if (answer?.status === 404) throw new CommandError('notFound', `cluster "${cluster}" has no token "${id}"`)
  bodyOf(cluster, answer)
  context.stdout.write(`bootstrap token "${id}" deleted\n`)
}
