/** A client of one database that commits row after row, and records each commit that the server acknowledged (tests only). It connects again after every break. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../localCluster.ts'
import { PostgresConnection } from './postgresConnection.ts'

const askMs = 3000
const retryMs = 200
/** Between two commits: the machine has other work, too. */
const pauseMs = 20

/** Where the database is reached: at the port of each of these nodes. */
export interface DatabaseAddress {
  readonly hosts: readonly string[]
  readonly port: number
}

export class CommitWriter {
  readonly name: string
  readonly #address: DatabaseAddress
  readonly #acknowledged: number[] = []
  readonly #stopping = new AbortController()
  #connection: PostgresConnection | undefined
  #attempts = 0
  #nextId = 1
  #isPaused = false
  #isIdle = false
  #lastError = ''
  #running: Promise<void> | undefined

  constructor(name: string, address: DatabaseAddress) {
    this.name = name
    this.#address = address
  }

  /** How many commits were acknowledged so far. */
  get count(): number {
    return this.#acknowledged.length
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  /** Waits until so many more commits are acknowledged. */
  async progress(more: number, timeoutMs: number): Promise<void> {
    const wanted = this.count + more
    const state = async () => ({ acknowledged: this.count, wanted, lastError: this.#lastError })
    await eventually(`commits of ${this.name}`, timeoutMs, state, ({ acknowledged }) => acknowledged >= wanted)
  }

  /** Nothing is committed while the work runs, and all commits before it are on the disk. */
  async whilePaused<T>(work: () => Promise<T>): Promise<T> {
    this.#isPaused = true
    try {
      await eventually(
        `the pause of ${this.name}`,
        60_000,
        async () => this.#isIdle,
        (isIdle) => isIdle,
      )
      await this.#once('CHECKPOINT')
      return await work()
    } finally {
      this.#isPaused = false
    }
  }

  /** @throws AssertionError when the database lacks a row of an acknowledged commit, or has another one in its place */
  assertNothingLost(): Promise<void> {
    return this.moment()(this.#address)
  }

  /** The commits until now, to be looked for in a copy of the database. */
  moment(): (address: DatabaseAddress) => Promise<void> {
    const expected = [...this.#acknowledged]
    return (address) => this.#assertHas(expected, address)
  }

  /** Deletes the row of an acknowledged commit, which the next assertion finds. */
  async loseOne(): Promise<void> {
    await this.#once(`DELETE FROM commits WHERE id = ${this.#acknowledged[0]}`)
  }

  async #assertHas(expected: readonly number[], address: DatabaseAddress): Promise<void> {
    const { rows } = await this.#once('SELECT id FROM commits WHERE payload = md5(id::text)', address)
    const found = new Set(rows.map(([id]) => Number(id)))
    const lost = expected.filter((id) => !found.has(id))
    assert.deepEqual(lost, [], `${this.name} lost ${lost.length} of ${expected.length} acknowledged commits`)
  }

  /** A question on a connection of its own, repeated until the database answers. */
  async #once(text: string, { hosts, port } = this.#address) {
    let attempt = 0
    const ask = async () => {
      let connection: PostgresConnection | undefined
      try {
        connection = await PostgresConnection.open(hosts[attempt++ % hosts.length] ?? '', port, askMs)
        return await connection.query(text, 30_000)
      } catch (error) {
        return (error as Error).message
      } finally {
        await connection?.close()
      }
    }
    const answer = await eventually(`${text} of ${this.name}`, 60_000, ask, (found) => typeof found !== 'string')
    assert.ok(typeof answer !== 'string')
    return answer
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      this.#isIdle = this.#isPaused
      const waited = this.#isPaused ? pauseMs : await this.#commit()
      await delay(waited, undefined, { signal }).catch(() => {})
    }
    await this.#connection?.close()
  }

  /** A number is never used twice: whether an attempt that failed was committed is unknown. @returns how long to wait then */
  async #commit(): Promise<number> {
    const id = this.#nextId++
    try {
      this.#connection ??= await this.#connect()
      const { tag } = await this.#connection.query(`INSERT INTO commits VALUES (${id}, md5('${id}'))`, askMs)
      assert.equal(tag, 'INSERT 0 1')
      this.#acknowledged.push(id)
      return pauseMs
    } catch (error) {
      this.#lastError = (error as Error).message
      await this.#connection?.close()
      this.#connection = undefined
      return retryMs
    }
  }

  async #connect(): Promise<PostgresConnection> {
    const { hosts, port } = this.#address
    const connection = await PostgresConnection.open(hosts[this.#attempts++ % hosts.length] ?? '', port, askMs)
    try {
      await connection.query('CREATE TABLE IF NOT EXISTS commits (id bigint PRIMARY KEY, payload text NOT NULL)', askMs)
      return connection
    } catch (error) {
      await connection.close()
      throw error
    }
  }
}
