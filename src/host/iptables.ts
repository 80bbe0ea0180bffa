/**
 * Chains of iptables as data (L1): renders them as input of iptables-restore(8), and only what differs from the state before. An owner shares the tables with
 * others: it has chains of its own, and jumps to them from chains that are not. Rendering is pure; OwnChains remembers what the kernel has.
 * Upstream's counterpart: pkg/util/iptables (v1.36).
 */
import { sameLines } from '#base/sameLines'
import { check, type Exec, ExecError } from './exec.ts'
import { atOnce, inTimeSlices, type Turns } from './timeSlices.ts'

export type IptablesFamily = 'IPv4' | 'IPv6'
export type IptablesTable = 'filter' | 'nat' | 'mangle'

/** Chain → its rules, each without the chain's name. */
export type Chains = ReadonlyMap<string, readonly string[]>
export type ChainsByTable = ReadonlyMap<IptablesTable, Chains>

/** A rule in a chain of others. */
export interface Jump {
  readonly table: IptablesTable
  readonly from: string
  /** Conditions and comment; may be empty. */
  readonly match: string
  readonly to: string
}

export interface ChainOwner {
  /** Each is inserted before the rules of its chain, in this order, unless it is there. */
  readonly jumps: readonly Jump[]
  /** Chains that the owner made, in this or an earlier process. */
  owns(chain: string): boolean
  /** An empty chain of the table mangle. Its absence shows that another program has flushed the tables. */
  readonly canary: string
}

/** One call of iptables-restore. */
export interface Restored {
  /** True: every chain was written, not only those that differ. */
  readonly isFull: boolean
  readonly failed: boolean
  /** Rules written, by table. */
  readonly written: ReadonlyMap<string, number>
}

export interface OwnChains {
  /** Brings the kernel to these chains, one transaction per table. After a failure the next call writes everything. */
  apply(wanted: ChainsByTable): Promise<void>
  /** Writes everything of the last apply() again if it failed or the tables were flushed since. */
  repair(): Promise<void>
  /** Writes everything of the last apply() again. */
  rewrite(): Promise<void>
}

const programs = {
  IPv4: { iptables: 'iptables', save: 'iptables-save', restore: 'iptables-restore' },
  IPv6: { iptables: 'ip6tables', save: 'ip6tables-save', restore: 'ip6tables-restore' },
} as const
/** The most that a program waits for another one that changes the rules. */
const wait = ['-w', '5'] as const

/** Why this host cannot hold rules of the family; undefined when it can. */
export async function iptablesObstacle(exec: Exec, family: IptablesFamily): Promise<string | undefined> {
  const { iptables } = programs[family]
  const { code, stderr } = await exec.run(iptables, [...wait, '-t', 'nat', '-S', 'POSTROUTING'])
  if (code === -1) return `${iptables} is not installed; the package iptables has it`
  return code === 0 ? undefined : `${iptables} does not work here: ${stderr.trim() || `exit ${code}`}`
}

/** @param turns scripts are rendered in short turns of the event loop @param onRestored called after each call of iptables-restore */
export function createOwnChains(
  exec: Exec,
  family: IptablesFamily,
  owner: ChainOwner,
  turns: Turns,
  onRestored: (restored: Restored) => void = () => {},
): OwnChains {
  let applied: ChainsByTable | undefined
  let newest: ChainsByTable | undefined
  let work = Promise.resolve()
  /** Each after the other, because two programs at once would both start from the same state. */
  const inTurn = (act: () => Promise<void>): Promise<void> => {
    const done = work.then(act)
    work = done.catch(() => {})
    return done
  }
  const bring = async (wanted: ChainsByTable) => {
    const isFull = applied === undefined
    const steps = applied ? changeSteps(wanted, applied) : allSteps(wanted, await savedTables(exec, family), owner)
    const script = await inTimeSlices(steps, turns)
    // The transaction may fail because the kernel's chains are not as they were left.
    applied = undefined
    if (script) {
      const restored = { isFull, written: rulesByTable(script) }
      await restore(exec, family, script).catch((error: unknown) => {
        onRestored({ ...restored, failed: true })
        throw error
      })
      onRestored({ ...restored, failed: false })
    }
    applied = wanted
  }
  const bringAll = async () => {
    applied = undefined
    if (newest) await bring(newest)
  }
  return {
    apply: (wanted) =>
      inTurn(() => {
        newest = wanted
        return bring(wanted)
      }),
    repair: () =>
      inTurn(async () => {
        if (!newest || (applied === newest && (await isThere(exec, family, owner.canary)))) return
        await bringAll()
      }),
    rewrite: () => inTurn(bringAll),
  }
}

/** Removes the owner's chains and every jump to them. A host without iptables has none. */
export async function removeOwnChains(exec: Exec, family: IptablesFamily, owner: Pick<ChainOwner, 'owns'>): Promise<void> {
  const { save } = programs[family]
  const result = await exec.run(save, [])
  if (result.code === -1) return
  if (result.code !== 0) throw new ExecError(save, [], result)
  const script = renderRemoval(parseSaved(result.stdout), owner)
  if (script) await restore(exec, family, script)
}

/** Only exit code 1 says that the chain is absent; another one, that the kernel could not be asked. */
async function isThere(exec: Exec, family: IptablesFamily, canary: string): Promise<boolean> {
  const { code } = await exec.run(programs[family].iptables, [...wait, '-t', 'mangle', '-S', canary])
  return code !== 1
}

/** The rules that a script adds. */
function rulesByTable(script: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  let table = ''
  for (let at = 0, end = 0; at < script.length; at = end + 1) {
    end = script.indexOf('\n', at)
    if (end < 0) end = script.length
    if (script[at] === '*') table = script.slice(at + 1, end)
    else if (script.startsWith('-A ', at)) counts.set(table, (counts.get(table) ?? 0) + 1)
  }
  return counts
}

async function savedTables(exec: Exec, family: IptablesFamily): Promise<SavedTables> {
  return parseSaved(await check(exec, programs[family].save, []))
}

async function restore(exec: Exec, family: IptablesFamily, input: string): Promise<void> {
  await check(exec, programs[family].restore, [...wait, '--noflush', '--counters'], { input })
}

/** A rule with the number of packets that matched it; of the table nat, connections. */
export interface CountedRule {
  /** As iptables-save(8) writes it. */
  readonly text: string
  /** The chain that it leads to, or the verdict; empty: none. */
  readonly target: string
  readonly packets: number
}

/** Rules of these tables as the kernel has them, under `TABLE CHAIN`. @param accepts which of them to keep */
export async function countedRules(
  exec: Exec,
  family: IptablesFamily,
  tables: readonly IptablesTable[],
  accepts: (table: IptablesTable, chain: string, text: string) => boolean,
): Promise<ReadonlyMap<string, readonly CountedRule[]>> {
  const rules = new Map<string, CountedRule[]>()
  for (const table of tables)
    for (const line of (await check(exec, programs[family].save, ['-c', '-t', table])).split('\n')) {
      if (!line.startsWith('[')) continue
      const text = line.slice(line.indexOf(' ') + 1)
      const chain = chainOf(text)
      if (!accepts(table, chain, text)) continue
      const rule = { text, target: targetOf(text), packets: Number.parseInt(line.slice(1), 10) }
      const there = rules.get(`${table} ${chain}`)
      if (there) there.push(rule)
      else rules.set(`${table} ${chain}`, [rule])
    }
  return rules
}

interface SavedTable {
  readonly chains: string[]
  /** As `-A CHAIN …`. */
  readonly rules: string[]
}

export type SavedTables = ReadonlyMap<string, SavedTable>

/** Reads what iptables-save(8) prints. */
export function parseSaved(text: string): SavedTables {
  const tables = new Map<string, SavedTable>()
  let table: SavedTable = { chains: [], rules: [] }
  for (const line of text.split('\n')) {
    if (line.startsWith('*')) {
      table = { chains: [], rules: [] }
      tables.set(line.slice(1).trim(), table)
    } else if (line.startsWith(':')) table.chains.push(line.slice(1, line.indexOf(' ')))
    else if (line.startsWith('-A ')) table.rules.push(line)
  }
  return tables
}

/** The changes between two states, of the chains that differ only. Empty when none does. */
export function renderChange(wanted: ChainsByTable, before: ChainsByTable): string {
  return atOnce(changeSteps(wanted, before))
}

function* changeSteps(wanted: ChainsByTable, before: ChainsByTable): Generator<undefined, string> {
  const texts: string[] = []
  for (const [table, chains] of wanted) {
    const old = before.get(table)
    const written: WrittenChain[] = []
    for (const chain of chains) {
      if (!sameLines(old?.get(chain[0]), chain[1])) written.push(chain)
      yield
    }
    const deleted = [...(old?.keys() ?? [])].filter((name) => !chains.has(name))
    texts.push(yield* tableSteps(table, { written, changed: [], deleted }))
  }
  return texts.join('')
}

/** Every chain, the jumps that are absent, and the removal of chains that the owner made earlier. */
export function renderAll(wanted: ChainsByTable, saved: SavedTables, owner: ChainOwner): string {
  return atOnce(allSteps(wanted, saved, owner))
}

function* allSteps(wanted: ChainsByTable, saved: SavedTables, owner: ChainOwner): Generator<undefined, string> {
  const texts: string[] = []
  for (const [table, chains] of wanted) {
    const found = saved.get(table) ?? { chains: [], rules: [] }
    const foreign = found.rules.filter((rule) => !owner.owns(chainOf(rule)))
    const present = new Set(foreign.map((rule) => `${chainOf(rule)} ${targetOf(rule)}`))
    const absent = owner.jumps.filter((jump) => jump.table === table && !present.has(`${jump.from} ${jump.to}`))
    const changed = absent.map(({ from, match, to }) => ['-I', from, match, '-j', to].filter(Boolean).join(' '))
    const deleted = found.chains.filter((name) => owner.owns(name) && !chains.has(name))
    texts.push(yield* tableSteps(table, { written: [...chains], changed, deleted }))
  }
  return texts.join('')
}

export function renderRemoval(saved: SavedTables, { owns }: Pick<ChainOwner, 'owns'>): string {
  return [...saved]
    .map(([table, { chains, rules }]) => {
      const jumps = rules.filter((rule) => !owns(chainOf(rule)) && owns(targetOf(rule)))
      return atOnce(tableSteps(table, { written: [], changed: jumps.map((rule) => rule.replace('-A', '-D')), deleted: chains.filter(owns) }))
    })
    .join('')
}

const chainOf = (rule: string) => rule.split(' ', 2)[1] ?? ''
/** Comments may contain anything. */
const targetOf = (rule: string) => / -[jg] (\S+)/.exec(rule.replace(/"(?:\\.|[^"\\])*"/g, ''))?.[1] ?? ''

type WrittenChain = readonly [name: string, rules: readonly string[]]

interface TableChange {
  readonly written: readonly WrittenChain[]
  /** Commands for chains of others. */
  readonly changed: readonly string[]
  readonly deleted: readonly string[]
}

/** The line of a chain creates or empties it, so that no chain refers to a deleted one when it goes. */
function* tableSteps(table: string, { written, changed, deleted }: TableChange): Generator<undefined, string> {
  if (written.length + changed.length + deleted.length === 0) return ''
  const lines = [`*${table}`]
  for (const [name] of written) lines.push(`:${name} - [0:0]`)
  for (const name of deleted) lines.push(`:${name} - [0:0]`)
  lines.push(...changed)
  yield
  for (const [name, rules] of written) {
    for (const rule of rules) lines.push(`-A ${name} ${rule}`)
    yield
  }
  for (const name of deleted) lines.push(`-X ${name}`)
  lines.push('COMMIT', '')
  return lines.join('\n')
}
