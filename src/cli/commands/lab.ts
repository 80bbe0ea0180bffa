/** `skiff lab`: exercises on a live cluster that check themselves (L4). */
import fs from 'node:fs/promises'
import path from 'node:path'
import { isStatus } from '#api/machinery/status'
import { deadlineScope } from '#base/abortScope'
import { namespaces, nodes } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { poll } from '#client/waitFor'
import { type CliCommand, type CommandContext, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { kubeconfigText } from '../kubeconfigFile.ts'
import type { Lab } from '../labs/lab.ts'
import { Look } from '../labs/look.ts'
import type { Outcome } from '../labs/outcome.ts'
import { printFound } from '../output.ts'
import { withConnection } from '../past/connection.ts'
import { table } from './status.ts'

interface Flags {
  readonly name?: string
  readonly output?: string
}

const leastNodes = 2
const goneMs = 60_000
const settleMs = 10_000
const pollMs = 200

export const lab: CliCommand = {
  name: 'lab',
  register: (program, context) => {
    const group = program.command('lab').description('fourteen exercises on how Kubernetes works inside, which check themselves')
    const withCluster = (command: ReturnType<typeof group.command>) => command.option('--name <cluster>', 'the cluster, where there are several')
    withCluster(group.command('list').description('list the labs, and what is done in this cluster'))
      .option('-o, --output <format>', 'json')
      .action((flags: Flags) => list(context, flags))
    withCluster(group.command('start <number>').description('make a namespace for the lab with what it begins with, and say what to do')).action(
      (number: string, flags: Flags) => inLab(context, number, flags, start),
    )
    withCluster(group.command('check <number>').description('check the tasks, and say what was found; exits with 1 while one is not done'))
      .option('-o, --output <format>', 'json')
      .action((number: string, flags: Flags) => inLab(context, number, flags, check))
    withCluster(group.command('hint <number>').description('print commands for the first task that is not done')).action((number: string, flags: Flags) =>
      inLab(context, number, flags, hint),
    )
    withCluster(group.command('solve <number>').description('run the hints of all tasks that are not done; needs kubectl')).action(
      (number: string, flags: Flags) => inLab(context, number, flags, solve),
    )
    withCluster(group.command('reset <number>').description('remove the namespace of the lab')).action((number: string, flags: Flags) =>
      inLab(context, number, flags, reset),
    )
  },
}

interface Session {
  readonly context: CommandContext
  readonly lab: Lab
  readonly look: Look
  readonly flags: Flags
  readonly cluster: string
}

/** With the lab of that number, and the cluster. */
async function inLab(context: CommandContext, number: string, flags: Flags, act: (session: Session) => Promise<void>): Promise<void> {
  const [{ labs }, { namespaceOf }] = await Promise.all([import('../labs/index.ts'), import('../labs/lab.ts')])
  const found = labs.find((one) => String(one.number) === number.replace(/^(lab-)?0?/, ''))
  if (!found) throw new CommandError('usage', `there is no lab ${number}`, { hint: 'skiff lab list lists them' })
  const cluster = await resolveCluster(context, flags.name)
  await withConnection(context, { cluster }, ({ transport }) =>
    act({ context, lab: found, look: new Look(createClient(transport), namespaceOf(found)), flags, cluster }),
  )
}

async function list(context: CommandContext, flags: Flags): Promise<void> {
  const [{ labs }, { namespaceOf }] = await Promise.all([import('../labs/index.ts'), import('../labs/lab.ts')])
  const cluster = await resolveCluster(context, flags.name)
  const rows = await withConnection(context, { cluster }, async ({ transport }) => {
    const client = createClient(transport)
    return Promise.all(
      labs.map(async (one) => {
        const look = new Look(client, namespaceOf(one))
        const isStarted = await isThere(look)
        const done = isStarted ? (await outcomesOf(one, look)).filter(({ passed }) => passed).length : 0
        return { number: one.number, title: one.title, about: one.about, started: isStarted, done, tasks: one.tasks.length }
      }),
    )
  })
  printFound(context, flags.output === 'json' ? 'json' : 'text', rows, (all) =>
    table([
      ['LAB', 'TITLE', 'DONE', 'ABOUT'],
      ...all.map(({ number, title, started, done, tasks, about }) => [String(number), title, started ? `${done} of ${tasks}` : '', about]),
    ]),
  )
}

async function isThere(look: Look): Promise<boolean> {
  const namespace = await look.get(namespaces, look.namespace)
  return namespace !== undefined && !namespace.metadata.deletionTimestamp
}

async function mustBeThere({ look, lab: { number } }: Session): Promise<void> {
  if (!(await isThere(look))) throw new CommandError('notFound', `lab ${number} is not started`, { hint: `skiff lab start ${number}` })
}

/** In order: a task may need what an earlier one made. */
async function outcomesOf({ tasks }: Lab, look: Look): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const task of tasks) outcomes.push(await task.check(look))
  return outcomes
}

async function start(session: Session): Promise<void> {
  const { context, lab: one, look, cluster } = session
  await refuseCluster(look, cluster)
  if (!(await isThere(look))) {
    await untilGone(session)
    await one.cleanUp?.(look)
    await look.client.of(namespaces).create({ metadata: { name: look.namespace, labels: { 'skiff.dev/lab': String(one.number) } }, spec: {} })
    context.ifInterrupted(`lab ${one.number} was started in part: skiff lab reset ${one.number} removes it`)
    await one.start?.(look)
  }
  const tasks = one.tasks.map(({ text }, at) => `\n${at + 1}. ${text}\n`)
  context.stdout.write(`Lab ${one.number}: ${one.title}\n${one.about}\n${tasks.join('')}\n`)
  context.stderr.write(`skiff lab check ${one.number} checks, skiff lab hint ${one.number} helps, skiff lab reset ${one.number} removes it\n`)
}

/** The labs' images exist nowhere, and some tasks tell simulated containers what to do. */
async function refuseCluster(look: Look, cluster: string): Promise<void> {
  const { items } = await look.client.of(nodes).list()
  const simulated = items.filter(({ metadata }) => metadata.labels?.['skiff.dev/runtime'] === 'simulated')
  if (simulated.length >= leastNodes && simulated.length === items.length) return
  throw new CommandError(
    'unmetPrerequisite',
    `the labs need a cluster of at least ${leastNodes} simulated nodes; ${cluster} has ${simulated.length} and ${items.length - simulated.length} others`,
    {
      hint: 'skiff up lab --runtime simulated --simulated-nodes 3',
    },
  )
}

/** Resolves when an earlier run's namespace is gone. */
async function untilGone({ context: { clock }, look }: Session): Promise<void> {
  using time = deadlineScope({ clock, ms: goneMs })
  const isGone = async () => ((await look.get(namespaces, look.namespace)) ? undefined : true)
  await poll(clock, pollMs, isGone, time.signal).catch((error) => {
    if (!time.signal.aborted) throw error
    throw new CommandError('timeout', `the namespace ${look.namespace} is still being removed`, { hint: `skiff why namespace/${look.namespace}` })
  })
}

async function check(session: Session): Promise<void> {
  await mustBeThere(session)
  const { context, lab: one, look, flags } = session
  const outcomes = await outcomesOf(one, look)
  printFound(context, flags.output === 'json' ? 'json' : 'text', outcomes, (all) =>
    all.map(({ passed, observed }, at) => `${passed ? '✓' : '✗'} ${at + 1}. ${observed}\n`).join(''),
  )
  if (outcomes.every(({ passed }) => passed)) context.stderr.write(`Lab ${one.number} is done\n`)
  else context.local.exitWith(1)
}

async function hint(session: Session): Promise<void> {
  await mustBeThere(session)
  const { context, lab: one, look } = session
  const outcomes = await outcomesOf(one, look)
  const at = outcomes.findIndex(({ passed }) => !passed)
  const task = one.tasks[at]
  context.stdout.write(task ? `# ${at + 1}. ${task.text}\n${task.hint}\n` : '')
  if (!task) context.stderr.write(`Lab ${one.number} is done\n`)
}

async function solve(session: Session): Promise<void> {
  await mustBeThere(session)
  const { context, lab: one, look, cluster } = session
  const directory = context.local.directory()
  const kubeconfig = path.join(directory, 'kubeconfig')
  await fs.writeFile(kubeconfig, kubeconfigText(await context.clusters.kubeconfig(cluster)), { mode: 0o600 })
  for (const [at, task] of one.tasks.entries()) {
    if ((await task.check(look)).passed) continue
    context.stdout.write(`# ${at + 1}. ${task.text}\n${task.hint}\n`)
    const code = await context.local.run('bash', ['-euo', 'pipefail', '-c', task.hint], { KUBECONFIG: kubeconfig, KUBECACHEDIR: path.join(directory, 'cache') })
    if (code === undefined) throw new CommandError('unmetPrerequisite', 'bash is not on the PATH')
    const { passed, observed } = await settled(context, () => task.check(look))
    if (!passed)
      throw new CommandError('internal', `task ${at + 1} is not done by its hint: ${observed}`, {
        hint: 'commands that ran before may have changed what it expects: skiff lab reset',
      })
  }
  await check(session)
}

/** What the commands began takes a moment. */
async function settled({ clock }: CommandContext, ask: () => Promise<Outcome>): Promise<Outcome> {
  const deadline = clock.monotonicMs() + settleMs
  for (;;) {
    const outcome = await ask()
    if (outcome.passed || clock.monotonicMs() > deadline) return outcome
    await clock.sleep(pollMs)
  }
}

async function reset(session: Session): Promise<void> {
  const { look, lab: one } = session
  const deleted = await look.client
    .of(namespaces)
    .delete({ name: look.namespace })
    .then(
      () => true,
      (error) => {
        if (isStatus(error, 'NotFound')) return false
        throw error
      },
    )
  if (!deleted) throw new CommandError('notFound', `lab ${one.number} is not started`)
  await one.cleanUp?.(look)
  await untilGone(session)
}
