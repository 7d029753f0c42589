//! The main job: from an application to a plan, pass by pass, one tracing span each.

use std::collections::BTreeMap;
use std::time::Instant;

use csdfc_codegen::plan::{self, Plan, StorageModel};
use tracing::{info, info_span, warn};

use crate::app::resolve::{Application, Cnn, RowsChoice};
use crate::app::spec::{Method, Prefer};
use crate::assemble::{self, Parts};
use crate::cost::DeviceProfile;
use crate::error::Error;
use crate::execution::{CnnTask, PartitionTask};
use crate::search::choice::Choice;
use crate::search::code;
use crate::search::known::{self, Start};
use crate::search::paper::{self, Subject};
use crate::search::select::Selection;
use crate::search::simple::{self, Front};
use crate::search::watch::{Scope, Stopped, Watch};
use crate::search::{Demand, Found, Rate, Shortfall, Variant, baseline, extended};
use crate::storage::edges::{self, Sharing};
use crate::storage::{self, Arrangement, Effort, Storage};
use crate::timing::Timing;
use crate::units::MemoryGoal;

/// A plan, and what it could not reach.
#[derive(Debug)]
pub struct Outcome {
    /// The plan; where constraints cannot be met, the nearest.
    pub plan: Plan,
    /// What there is instead, where constraints cannot be met.
    pub shortfall: Option<Shortfall>,
    /// Why the plan is refused, where none that is not was left.
    pub refused: Option<String>,
}

/// Says why it refuses a plan, if it does.
pub type Judge<'a> = &'a dyn Fn(&Plan) -> Result<(), String>;

/// Plans an application. `model_paths` are what the plan states as the paths of the models, one per CNN.
///
/// # Errors
/// When the device lacks a processor, or an analysis refuses the graph.
pub fn plan(
    application: &Application,
    device: &DeviceProfile,
    model_paths: Vec<String>,
) -> Result<Outcome, Error> {
    plan_from(&Start::default(), application, device, model_paths, &Watch::unwatched(), &|_| Ok(()))
}

/// Plans an application as [`plan()`] does, from what is known and by a search that is watched. A plan that the judge
/// refuses is dropped with a warning, and the next best is made.
///
/// # Errors
/// As [`plan()`].
pub fn plan_from(
    start: &Start,
    application: &Application,
    device: &DeviceProfile,
    model_paths: Vec<String>,
    watch: &Watch<'_>,
    judge: Judge<'_>,
) -> Result<Outcome, Error> {
    let method = match (start, &application.rows) {
        (Start::Search(_), RowsChoice::Default) => Some(application.search.method.unwrap_or_default()),
        _ => None,
    };
    let one_after_another;
    let application = if method == Some(Method::Reuse) {
        one_after_another = baseline::without_pipelines(application);
        &one_after_another
    } else {
        application
    };
    let tasks = tasks(application);
    let parameters = assemble::parameters_stored(&tasks);
    let limit = match application.constraints.memory {
        Some(MemoryGoal::Bytes(bytes)) => Some(bytes),
        Some(MemoryGoal::Min) | None => None,
    };
    if let Some(limit) = limit.filter(|limit| parameters > *limit) {
        warn!(
            "the parameters alone take {parameters} bytes, more than the {limit} asked for: no plan can fit; \
             at half precision they would take {}, at int8 {} (neither is built yet)",
            parameters / 2,
            parameters / 4
        );
    }

    let elements = elements(application);
    let timings = Timing::of(application, &tasks, &elements, device)?;
    let sharing = method.map(baseline::sharing).unwrap_or_default();
    let finish = Finish {
        application,
        tasks: &tasks,
        elements: &elements,
        timings: &timings,
        device,
        method,
        sharing,
        limit,
        model_paths,
        judge,
    };
    match method {
        Some(Method::Paper | Method::PaperPrinted) => {
            let subject = Subject {
                application,
                tasks: &tasks,
                timings: &timings,
                elements: &elements,
                parameters,
                sharing,
                known: match start {
                    Start::Search(plans) => known::as_bits(plans, &tasks),
                    Start::Picked(_) => Vec::new(),
                },
            };
            Ok(finish.finish(info_span!("search").in_scope(|| paper::search(&subject, watch))?))
        }
        _ => {
            let planner = |fronts: Vec<Front>, known| Planner {
                application,
                tasks: &tasks,
                elements: &elements,
                evaluations: fronts.iter().map(|front| front.evaluations).sum(),
                stopped: fronts.iter().map(|front| front.stopped).max().unwrap_or(Stopped::Complete),
                variants: fronts.into_iter().map(|front| front.variants).collect(),
                known,
                parameters,
                sharing,
            };
            let demands: Vec<Demand> =
                application.cnns.iter().map(|cnn| application.constraints.of(&cnn.name)).collect();
            let is_open = watch.scope == Scope::Plan && *start == Start::default();
            let ends = match method {
                Some(Method::Extended) if is_open => {
                    let front = |(task, timing): (&CnnTask<'_>, &Timing<'_>)| {
                        let ends = [Choice::none(task.network), Choice::all(task.network)];
                        simple::front_of(task, timing, application.storage, &ends)
                    };
                    let fronts = tasks.iter().zip(&timings).map(front).collect::<Result<_, _>>()?;
                    Some(planner(fronts, Vec::new()))
                }
                _ => None,
            };
            let searched = || -> Result<Planner<'_>, Error> {
                let mut fronts = evaluate(start, application, &tasks, &timings, method, watch)?;
                let known = match start {
                    Start::Search(plans) if method.is_some_and(Method::is_search) => {
                        known::add(plans, &tasks, &timings, application.storage, &mut fronts)?
                    }
                    _ => Vec::new(),
                };
                Ok(planner(fronts, known))
            };
            let settled = ends.filter(|planner| planner.is_settled(limit, &demands));
            let mut is_settled = settled.is_some();
            let mut planner = match settled {
                Some(planner) => planner,
                None => searched()?,
            };
            loop {
                let (chosen, mut shortfall) =
                    info_span!("select").in_scope(|| planner.choose(limit, &demands));
                if let Some(shortfall) = shortfall.as_mut().filter(|_| is_settled) {
                    shortfall.least_memory = None;
                }
                let pareto = info_span!("front").in_scope(|| planner.front());
                let (evaluations, stopped) = (planner.evaluations, planner.stopped);
                let each = chosen.iter().zip(&planner.variants);
                let variants = each.map(|(v, all)| all[*v].clone()).collect();
                let outcome = finish.finish(Found { variants, shortfall, pareto, evaluations, stopped });
                let Some(why) = &outcome.refused else { return Ok(outcome) };
                if is_settled {
                    // A search has other variants to offer.
                    (planner, is_settled) = (searched()?, false);
                } else if !planner.drop(&chosen) {
                    return Ok(outcome);
                }
                warn!("a plan is dropped for the next best: {why}");
            }
        }
    }
}

/// All but the variants that a plan is made of.
struct Finish<'a> {
    application: &'a Application,
    tasks: &'a [CnnTask<'a>],
    elements: &'a [Vec<(usize, usize)>],
    timings: &'a [Timing<'a>],
    device: &'a DeviceProfile,
    method: Option<Method>,
    sharing: Sharing,
    limit: Option<u64>,
    model_paths: Vec<String>,
    judge: Judge<'a>,
}

impl Finish<'_> {
    /// Makes the plan of what was found.
    fn finish(&self, found: Found) -> Outcome {
        let Finish { application, tasks, elements, timings, device, method, sharing, limit, .. } = *self;
        info!(evaluations = found.evaluations, "searched");

        let storage = Storage { executions: found.variants.iter().map(|v| &v.execution).collect(), elements };
        let arrangement =
            info_span!("arrange").in_scope(|| arrange(&storage, application.storage, sharing, Effort::Final));
        info!(bytes = arrangement.bytes, bound = arrangement.bound.bytes, "arranged");
        let choices = application.cnns.iter().zip(&found.variants);
        let choices =
            choices.map(|(cnn, v)| (cnn.name.clone(), code::write(&v.choice(), &cnn.network))).collect();
        let plan = info_span!("assemble").in_scope(|| {
            assemble::assemble(Parts {
                application,
                tasks,
                timings,
                chosen: &found.variants.iter().collect::<Vec<_>>(),
                storage: &storage,
                arrangement: &arrangement,
                device,
                search: plan::Search {
                    method: method.map_or("given", Method::name).into(),
                    seed: application.search.seed,
                    evaluations: found.evaluations,
                    stopped: found.stopped.name().into(),
                    choices,
                },
                pareto: found.pareto,
                memory_limit: limit,
                model_paths: self.model_paths.clone(),
            })
        });
        let shortfall = found.shortfall.filter(|_| !plan.constraints.met);
        let refused = (self.judge)(&plan).err();
        Outcome { plan, shortfall, refused }
    }
}

/// Every CNN of an application, cut into its partitions.
pub fn tasks(application: &Application) -> Vec<CnnTask<'_>> {
    let at_once = |a: &str, b: &str| {
        a != b
            && application
                .parallel
                .iter()
                .any(|element| element.iter().any(|p| p == a) && element.iter().any(|p| p == b))
    };
    let task = |cnn: &Cnn| {
        let names: Vec<&str> = cnn.partitions.iter().map(|p| p.name.as_str()).collect();
        names.iter().map(|a| names.iter().map(|b| at_once(a, b)).collect()).collect()
    };
    application
        .cnns
        .iter()
        .map(|cnn| CnnTask {
            network: &cnn.network,
            partitions: cnn
                .partitions
                .iter()
                .map(|p| PartitionTask { layers: p.layers.clone(), steps: p.schedule.clone() })
                .collect(),
            together: task(cnn),
        })
        .collect()
}

/// J, each partition as (CNN, partition of that CNN).
pub fn elements(application: &Application) -> Vec<Vec<(usize, usize)>> {
    let find = |name: &String| {
        application.cnns.iter().enumerate().find_map(|(c, cnn)| {
            cnn.partitions.iter().position(|partition| partition.name == *name).map(|p| (c, p))
        })
    };
    application.parallel.iter().map(|element| element.iter().filter_map(find).collect()).collect()
}

/// The variants of every CNN that are worth choosing, by a method or, without one, under the choice that is picked or the
/// rows that the application gives. A method that makes variants has its arm here.
fn evaluate(
    start: &Start,
    application: &Application,
    tasks: &[CnnTask<'_>],
    timings: &[Timing<'_>],
    method: Option<Method>,
    watch: &Watch<'_>,
) -> Result<Vec<Front>, Error> {
    let started = Instant::now();
    let mut fronts = Vec::new();
    for (index, (task, timing)) in tasks.iter().zip(timings).enumerate() {
        let (name, storage) = (application.cnns[index].name.as_str(), application.storage);
        let _span = info_span!("evaluate", cnn = name).entered();
        let network = task.network;
        let method = method.unwrap_or_default();
        let given = match start {
            Start::Picked(choices) => choices.get(index).cloned(),
            Start::Search(_) => Choice::given(application, index),
        };
        let front = match (given, baseline::choice(method, network)) {
            (Some(choice), _) => simple::evaluate(task, timing, &[choice], storage)?,
            (None, Some(choice)) => baseline::front(task, timing, &choice, baseline::sharing(method))?,
            (None, None) if method == Method::Extended => {
                let watch = watch.share(tasks.len() - index, started);
                let known = start.of_cnn(index);
                let seed = application.search.seed;
                extended::front(task, timing, storage, seed, name, &known, &watch)?
            }
            (None, None) => simple::front(task, timing, storage)?,
        };
        info!(evaluations = front.evaluations, layers = network.layers.len(), "evaluated");
        fronts.push(front);
    }
    Ok(fronts)
}

/// Places all rings; in storage model `edges`, edges share buffers as the method has it.
fn arrange(storage: &Storage<'_>, model: StorageModel, sharing: Sharing, effort: Effort) -> Arrangement {
    match model {
        StorageModel::Edges => edges::arrange(storage, sharing, effort),
        StorageModel::Tensors => storage::arrange(storage, model, effort),
    }
}

struct Planner<'a> {
    application: &'a Application,
    tasks: &'a [CnnTask<'a>],
    elements: &'a [Vec<(usize, usize)>],
    variants: Vec<Vec<Variant>>,
    /// Old plans, as a variant of each CNN.
    known: Vec<Vec<usize>>,
    parameters: u64,
    sharing: Sharing,
    /// Choices that were evaluated, and why no more were.
    evaluations: u64,
    stopped: Stopped,
}

impl Planner<'_> {
    /// Whether no search could change the answer, where the fastest variants are among these: those of no parts, since no
    /// layer is slower that fires once. They fit, and meet all constraints or are the nearest to what is asked; or
    /// no plan is small enough.
    fn is_settled(&self, limit: Option<u64>, demands: &[Demand]) -> bool {
        if limit.is_some_and(|limit| self.parameters > limit) {
            return true;
        }
        let any = self.selection(&vec![Demand::default(); demands.len()]);
        let Some(fastest) = any.fastest(u64::MAX) else { return false };
        let least_memory = matches!(self.application.constraints.memory, Some(MemoryGoal::Min))
            || self.application.prefer == Prefer::Memory;
        let rates = fastest.iter().zip(&self.variants).map(|(v, all)| all[*v].rate());
        let is_fast_enough =
            rates.zip(demands).all(|(rate, demand)| demand.is_met(rate.fps, rate.latency_ns));
        !(least_memory && is_fast_enough) && limit.is_none_or(|limit| self.total(&fastest) <= limit)
    }

    fn selection(&self, demands: &[Demand]) -> Selection<'_> {
        let cnns = |element: &Vec<(usize, usize)>| {
            let mut cnns: Vec<usize> = element.iter().map(|(cnn, _)| *cnn).collect();
            cnns.sort_unstable();
            cnns.dedup();
            cnns
        };
        Selection::new(&self.variants, self.elements.iter().map(cnns).collect(), demands)
    }

    fn storage(&self, chosen: &[usize]) -> Storage<'_> {
        let executions = chosen.iter().zip(&self.variants).map(|(v, all)| &all[*v].execution).collect();
        Storage { executions, elements: self.elements }
    }

    fn arrange(&self, chosen: &[usize]) -> Arrangement {
        arrange(&self.storage(chosen), self.application.storage, self.sharing, Effort::Candidate)
    }

    /// Total memory of a choice, in bytes. Rings of CNNs that never run at the same time may lie at the same addresses: the
    /// largest CNN takes what there is.
    fn total(&self, chosen: &[usize]) -> u64 {
        let of_one_cnn =
            |element: &Vec<(usize, usize)>| element.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let is_largest =
            self.application.storage == StorageModel::Tensors && self.elements.iter().all(of_one_cnn);
        let each = chosen.iter().zip(&self.variants).map(|(v, all)| all[*v].buffers);
        let buffers = if chosen.len() == 1 || is_largest {
            each.max().unwrap_or(0)
        } else {
            self.arrange(chosen).bytes
        };
        self.parameters + buffers
    }

    fn rates(&self, chosen: &[usize]) -> BTreeMap<String, Rate> {
        let each = self.application.cnns.iter().zip(chosen.iter().zip(&self.variants));
        each.map(|(cnn, (v, all))| (cnn.name.clone(), all[*v].rate())).collect()
    }

    /// What each CNN can do at its best, whatever the others do.
    fn best_rates(&self, fastest: &[usize]) -> BTreeMap<String, Rate> {
        let mut rates = self.rates(fastest);
        for (cnn, variants) in self.application.cnns.iter().zip(&self.variants) {
            if let Some(rate) = rates.get_mut(&cnn.name) {
                rate.latency_ns = variants.iter().map(Variant::latency).min().unwrap_or(rate.latency_ns);
            }
        }
        rates
    }

    /// The fastest choice whose total is within `limit` bytes, as arranged: what is chosen CNN by CNN may come out
    /// larger together, then a smaller budget is tried.
    fn fastest_within(&self, selection: &Selection<'_>, limit: u64) -> Option<Vec<usize>> {
        let budget = limit.checked_sub(self.parameters)?;
        let smaller = selection.thresholds().into_iter().filter(|threshold| *threshold < budget);
        std::iter::once(budget)
            .chain(smaller)
            .map_while(|budget| selection.fastest(budget))
            .find(|chosen| self.total(chosen) <= limit)
    }

    /// Whether a choice is within the limit where its rings are placed as those of the plan that is kept, with more
    /// patience than for one of many.
    fn fits_in_the_end(&self, chosen: &[usize], limit: Option<u64>) -> bool {
        let bytes = || {
            let storage = self.storage(chosen);
            arrange(&storage, self.application.storage, self.sharing, Effort::Final).bytes
        };
        limit.is_none_or(|limit| self.parameters + bytes() <= limit)
    }

    /// The choice of least memory, the fastest of those.
    fn smallest(&self, selection: &Selection<'_>) -> Option<Vec<usize>> {
        selection.fastest(selection.least()?)
    }

    /// The choice for these constraints and, where they can't be met, what can.
    fn choose(&self, limit: Option<u64>, demands: &[Demand]) -> (Vec<usize>, Option<Shortfall>) {
        let nothing = vec![Demand::default(); demands.len()];
        let asked = self.selection(demands);
        let any = self.selection(&nothing);
        let least_memory = matches!(self.application.constraints.memory, Some(MemoryGoal::Min))
            || self.application.prefer == Prefer::Memory;
        let chosen = if least_memory {
            self.smallest(&asked).filter(|chosen| {
                limit.is_none_or(|limit| self.total(chosen) <= limit) || self.fits_in_the_end(chosen, limit)
            })
        } else {
            let fitting = self.fastest_within(&asked, limit.unwrap_or(u64::MAX));
            fitting.or_else(|| self.smallest(&asked).filter(|chosen| self.fits_in_the_end(chosen, limit)))
        };
        if let Some(chosen) = self.or_known(chosen, limit, demands, least_memory) {
            return (chosen, None);
        }
        let within = limit.map_or_else(|| any.fastest(u64::MAX), |limit| self.fastest_within(&any, limit));
        let within = self.or_known(within, limit, &nothing, false);
        // Every CNN has variants when none is excluded, so there is a smallest choice of all.
        let smallest = self.smallest(&any).unwrap_or_else(|| vec![0; self.variants.len()]);
        let unlimited = any.fastest(u64::MAX).unwrap_or_else(|| smallest.clone());
        let shortfall = Shortfall {
            least_memory: Some(self.total(&smallest)),
            memory_at_rates: self.smallest(&asked).map(|chosen| self.total(&chosen)),
            rates_in_memory: limit.and(within.as_ref()).map(|chosen| self.rates(chosen)),
            best_rates: self.best_rates(&unlimited),
        };
        (within.unwrap_or(smallest), Some(shortfall))
    }

    /// What was chosen, or an old plan that meets the constraints too and is better: CNNs that run at the same time are
    /// chosen for by what each takes alone, and old plans by what they take together.
    fn or_known(
        &self,
        chosen: Option<Vec<usize>>,
        limit: Option<u64>,
        demands: &[Demand],
        least_memory: bool,
    ) -> Option<Vec<usize>> {
        if self.known.is_empty() {
            return chosen;
        }
        let slowdown = |chosen: &[usize]| -> f64 {
            let relative = |(v, all): (&usize, &Vec<Variant>)| {
                all[*v].period_ns / all.iter().map(|v| v.period_ns).fold(f64::INFINITY, f64::min)
            };
            chosen.iter().zip(&self.variants).map(relative).sum()
        };
        let fast_enough = |chosen: &Vec<usize>| {
            let variants = chosen.iter().zip(&self.variants).map(|(v, all)| &all[*v]);
            variants.zip(demands).all(|(variant, demand)| demand.is_met(variant.fps(), variant.latency()))
        };
        let known = self.known.iter().filter(|known| fast_enough(known)).cloned();
        let worth = |chosen: Vec<usize>| (self.total(&chosen), slowdown(&chosen), chosen);
        let candidates = chosen.into_iter().chain(known).map(worth);
        candidates
            .filter(|(total, ..)| limit.is_none_or(|limit| *total <= limit))
            .min_by(|(a, slow_a, _), (b, slow_b, _)| {
                let slower = slow_a.total_cmp(slow_b);
                if least_memory { a.cmp(b).then(slower) } else { slower.then(a.cmp(b)) }
            })
            .map(|(_, _, chosen)| chosen)
    }

    /// Forgets the chosen variants, each of a CNN that has others. Whether there was any.
    fn drop(&mut self, chosen: &[usize]) -> bool {
        let mut is_any = false;
        for (c, (v, all)) in
            chosen.iter().zip(&mut self.variants).enumerate().filter(|(_, (_, all))| all.len() > 1)
        {
            all.remove(*v);
            is_any = true;
            self.known.retain(|known| known[c] != *v);
            self.known.iter_mut().for_each(|known| known[c] -= usize::from(known[c] > *v));
        }
        is_any
    }

    /// The plans seen from which none is worse in both memory and frame rates, by falling memory.
    fn front(&self) -> Vec<plan::ParetoPoint> {
        let any = self.selection(&vec![Demand::default(); self.tasks.len()]);
        let mut points: Vec<plan::ParetoPoint> = Vec::new();
        for budget in any.thresholds() {
            let Some(chosen) = any.fastest(budget) else { continue };
            let memory = self.total(&chosen);
            let each = self.application.cnns.iter().zip(chosen.iter().zip(&self.variants));
            let code =
                |(v, all): (&usize, &Vec<Variant>), cnn: &Cnn| code::write(&all[*v].choice(), &cnn.network);
            let choices = each.map(|(cnn, variant)| (cnn.name.clone(), code(variant, cnn))).collect();
            let fps = self.rates(&chosen).into_iter().map(|(cnn, rate)| (cnn, rate.fps)).collect();
            let point = plan::ParetoPoint { memory, fps, choices };
            // Budgets fall and frame rates with them: a point is dominated only by the one before it, or beats it.
            points.retain(|before| before.memory < memory || before.fps != point.fps);
            if points.last().is_none_or(|before| memory < before.memory) {
                points.push(point);
            }
        }
        points
    }
}
