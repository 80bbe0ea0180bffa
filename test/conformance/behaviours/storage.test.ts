import { storageBehaviours } from './index.ts'
import { runBehaviours } from './run.ts'

runBehaviours('behave-storage', storageBehaviours)
