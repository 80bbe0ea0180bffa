import { moreBehaviours } from './index.ts'
import { runBehaviours } from './run.ts'

runBehaviours('behave-more', moreBehaviours)
