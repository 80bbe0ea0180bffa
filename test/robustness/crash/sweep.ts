/**
 * Kills a component of the control plane at one call after the other while a scenario runs, and waits each time until all is as it must be.
 */
import assert from 'node:assert/strict'
import { localPathProvisioner } from '#controllers/localPath/localPathProvisioner'
import { startCluster, type TestCluster } from '#testing/cluster'
import { violations } from '#testing/invariants'
import type { Scenario } from './scenarios.ts'

export const victims = ['kube-controller-manager', 'kube-scheduler'] as const
export type Victim = (typeof victims)[number]

/** Calls from the scenario's beginning, and which of them are fatal. */
export interface Steps {
  readonly first: number
  readonly last: number
  readonly every: number
}

const mostCalls = 300

/** SKIFF_CRASH: `all`, every call; `N` or `N-M`, those only; absent, every ninth. */
export function stepsOf(text: string | undefined): Steps {
  if (text === undefined) return { first: 1, last: mostCalls, every: 9 }
  if (text === 'all') return { first: 1, last: mostCalls, every: 1 }
  const range = /^([1-9]\d*)(?:-([1-9]\d*))?$/.exec(text)
  if (!range) throw new Error(`SKIFF_CRASH=${text}: want all, a number or a range such as 10-20`)
  return { first: Number(range[1]), last: Number(range[2] ?? range[1]), every: 1 }
}

/** Objects of runs that are over make every restart dearer. */
const runsPerCluster = 20
const withinMs = 20 * 60_000

type When = 'before' | 'after'
interface Death {
  readonly scenario: Scenario
  readonly victim: Victim
  readonly nth: number
  /** The call goes out, or is carried out. */
  readonly when: When
}

/**
 * Lets the victim die at each of the calls until the scenario needs no more: before the call goes out, and after it was carried out; in turn when
 * some calls are left out.
 * @returns how often it died
 * @throws AggregateError of all the deaths that it did not get over
 */
export async function sweep(scenario: Scenario, victim: Victim, { first, last, every }: Steps): Promise<number> {
  const failures: Error[] = []
  let cluster: TestCluster | undefined
  let deaths = 0
  const runs = { left: 0 }
  const attempt = async (nth: number, when: When): Promise<boolean> => {
    if (runs.left === 0) {
      await cluster?.close()
      cluster = await startCluster({ nodes: 2, controllers: ['*', localPathProvisioner.name] })
      runs.left = runsPerCluster
    }
    runs.left--
    assert.ok(cluster)
    try {
      return await survives(cluster, { scenario, victim, nth, when })
    } catch (error) {
      failures.push(error as Error)
      runs.left = 0
      return true
    }
  }
  try {
    for (let nth = first, isOver = false; nth <= last && !isOver; nth += every) {
      const whens = every === 1 ? (['before', 'after'] as const) : ([((nth - first) / every) % 2 === 0 ? 'before' : 'after'] as const)
      for (const when of whens) {
        isOver = !(await attempt(nth, when))
        if (isOver) break
        deaths++
      }
    }
  } finally {
    await cluster?.close()
  }
  if (failures.length > 0) throw new AggregateError(failures, failures.map(({ message }) => message).join('\n'))
  return deaths
}

/** @returns whether the victim died at all */
async function survives(cluster: TestCluster, { scenario, victim, nth, when }: Death): Promise<boolean> {
  const { client, faults, until } = cluster
  const namespace = `run-${nth}-${when}`
  await scenario.prepare(client, namespace)
  await until(() => scenario.isReady(client, namespace), withinMs)
  const crash = faults.crashAt(victim, nth, when)
  await scenario.act(client, namespace)
  try {
    await until(async () => {
      await scenario.check(client, namespace)
      assert.deepEqual(await violations(client), [])
      return true
    }, withinMs)
  } catch (cause) {
    throw new Error(`${scenario.name}: ${victim} died ${when} call ${nth} (SKIFF_CRASH=${nth}): ${cause instanceof Error ? cause.message : cause}`, { cause })
  } finally {
    crash.remove()
  }
  return crash.hits > 0
}
