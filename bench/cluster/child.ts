/** The process that ./ownProcess.ts starts: does one task and writes what it measured as the last line. */
import { type Tasks, tasks } from './tasks.ts'

const [name, options] = process.argv.slice(2) as [keyof Tasks, string]
const run = tasks[name] as (options: unknown) => Promise<unknown>
process.stdout.write(`${JSON.stringify(await run(JSON.parse(options)))}\n`, () => process.exit(0))
