//! The corpus again, answered without the first-run audit, each statement once: what the engine says by itself. What PostgreSQL
//! refuses has to be refused here, too: behind an audit that a harmless literal has passed, another one raises.

use std::net::SocketAddr;

use freshet_tests::cluster::Cluster;
use freshet_tests::corpus::{Chapter, chapters, connect, connect_through, differs, setup};
use freshet_tests::freshet::Freshet;
use freshet_tests::generator::{Options, Share, run};

#[derive(Default)]
struct Answered {
    local: usize,
    refused: usize,
    problems: Vec<String>,
}

fn ask(chapter: &Chapter, direct: SocketAddr, through: SocketAddr, database: &str) -> Answered {
    let (mut direct, mut through) = (connect(direct, database), connect_through(through, database));
    let mut share = Answered::default();
    for sql in &chapter.statements {
        let expected = direct.simple(sql).expect("answers");
        let got = through.simple(sql).expect("answers");
        let (route, _) = through.last().expect("answers");
        share.local += usize::from(route == "local");
        share.refused += usize::from(expected.error().is_some());
        if let Some(difference) = differs(sql, &expected, &got) {
            share.problems.push(format!("{sql}: {route}: {difference}"));
        }
    }
    share
}

#[test]
fn the_engine_by_itself_has_upstreams_answers() {
    freshet::session::local::patient::want();
    let cluster = Cluster::shared();
    let database = setup(cluster);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let chapters = chapters();
    let shares: Vec<Answered> = std::thread::scope(|scope| {
        let ask = |chapter| ask(chapter, cluster.address(), freshet.address(), &database);
        let threads: Vec<_> = chapters.iter().map(|chapter| scope.spawn(move || ask(chapter))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a chapter")).collect()
    });
    for (chapter, share) in chapters.iter().zip(&shares) {
        let all = chapter.statements.len();
        println!("{}: {all} statements, {} refused, {} answered here", chapter.name, share.refused, share.local);
        let answered = all - share.refused;
        assert!(share.local <= answered, "{}", chapter.name);
        assert!(share.local * 10 >= answered * 8 || chapter.name == "11-refused", "{}: too few", chapter.name);
    }
    let problems: Vec<&String> = shares.iter().flat_map(|share| &share.problems).collect();
    assert!(problems.is_empty(), "{} differ: {problems:#?}", problems.len());
}

/// Likewise statements of the generator, constants among them that are no values of their type: in `generator.rs` the first execution,
/// which is upstream's, would be all that is ever seen of them.
#[test]
fn generated_statements_are_refused_where_upstream_refuses_them() {
    freshet::session::local::patient::want();
    let options = Options::of_environment(20_261_127, 60);
    let report = run(Cluster::shared(), &options);
    let sum = |of: fn(&Share) -> usize| report.shares.values().map(of).sum::<usize>();
    let (asked, refused, local, free) = (sum(|s| s.asked), sum(|s| s.refused), sum(|s| s.local), sum(|s| s.free));
    println!(
        "seed {}: {} worlds, {asked} statements, {refused} refused, {local} answered here, {free} free",
        options.seed, report.worlds
    );
    for sql in report.free.iter().take(5) {
        println!("- PostgreSQL answers in two ways: {sql}");
    }
    let failures: Vec<String> =
        report.failures.iter().map(|(path, text)| format!("{}\n{text}", path.display())).collect();
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(refused * 50 > asked && local * 2 > asked, "{asked} asked, {refused} refused, {local} answered here");
}
